//! Tokens to statements.

use std::rc::Rc;

use super::ast::{Arguments, Body, Expr, For, Macro, Stmt, Target, Uses};
use super::check_stack;
use super::lexer::Token;
use super::parser::Parser;
use super::value::Result;

pub fn parse(source: &str) -> Result<Body> {
    let mut parser = Parser::new(source)?;
    let body = parser.body(&[])?;
    match parser.peek() {
        Token::End => Ok(body),
        _ => parser.unexpected("the end of the template"),
    }
}

impl Parser {
    /// Statements up to a tag of one of the names in `ends`, which is the next token then.
    fn body(&mut self, ends: &'static [&'static str]) -> Result<Body> {
        check_stack()?;
        self.ends.push(ends);
        let mut body = Vec::new();
        loop {
            match self.peek() {
                Token::End if ends.is_empty() => break,
                Token::End => return self.error(format!("Unexpected end of template: expected {}", ends.join(" or "))),
                Token::Text(_) => {
                    if let Token::Text(text) = self.next() {
                        body.push(Stmt::Text(text));
                    }
                }
                Token::PrintBegin => {
                    self.next();
                    body.push(Stmt::Print(self.tuple(true, &[], false)?));
                    self.expect(Token::PrintEnd, "the end of the print statement")?;
                }
                _ => {
                    self.expect(Token::TagBegin, "a tag")?;
                    if ends.iter().any(|name| self.is_name(name)) {
                        break;
                    }
                    self.statement(&mut body)?;
                    self.expect(Token::TagEnd, "the end of the tag")?;
                }
            }
        }
        self.ends.pop();
        Ok(body)
    }

    /// The rest of the tag that opens a block, then its body; the end's name is the next token.
    fn block(&mut self, ends: &'static [&'static str]) -> Result<Body> {
        self.skip_op(":");
        self.expect(Token::TagEnd, "the end of the tag")?;
        self.body(ends)
    }

    /// A block with one possible end, that included.
    fn closed_block(&mut self, ends: &'static [&'static str]) -> Result<Body> {
        let body = self.block(ends)?;
        self.next();
        Ok(body)
    }

    fn statement(&mut self, body: &mut Body) -> Result<()> {
        let name = match self.peek() {
            Token::Name(name) => name.clone(),
            _ => return self.error("tag name expected"),
        };
        self.next();
        let statement = match &*name {
            "for" => self.for_loop()?,
            "if" => self.conditional()?,
            "set" => self.assignment()?,
            "with" => self.with()?,
            "macro" => self.macro_definition()?,
            "call" => self.call_block()?,
            "filter" => {
                let filter = self.filter_chain(Expr::FilterInput)?;
                Stmt::FilterBlock(filter, self.closed_block(&["endfilter"])?)
            }
            "generation" => {
                let loops = std::mem::take(&mut self.loops);
                let block = self.closed_block(&["endgeneration"])?;
                self.loops = loops;
                Stmt::Generation(block)
            }
            "print" => return self.print_statement(body),
            "break" | "continue" if self.loops == 0 => return self.error(format!("'{name}' outside loop")),
            "break" => Stmt::Break,
            "continue" => Stmt::Continue,
            "block" | "extends" | "include" | "import" | "from" | "autoescape" => {
                return self
                    .error(format!("the tag '{name}' is not supported: a chat template is one file of plain text"))
            }
            _ => match self.ends.last() {
                Some([]) | None => return self.error(format!("Encountered unknown tag '{name}'.")),
                Some(ends) => {
                    let ends = ends.join(" or ");
                    return self.error(format!("Encountered unknown tag '{name}', expected {ends}."));
                }
            },
        };
        body.push(statement);
        Ok(())
    }

    fn print_statement(&mut self, body: &mut Body) -> Result<()> {
        while *self.peek() != Token::TagEnd {
            body.push(Stmt::Print(self.expression()?));
            if !self.skip_op(",") {
                break;
            }
        }
        Ok(())
    }

    fn for_loop(&mut self) -> Result<Stmt> {
        let target = self.target(&["in"], false)?;
        if !self.skip_name("in") {
            return self.unexpected("'in'");
        }
        let iterable = self.tuple(false, &["recursive"], false)?;
        let test = if self.skip_name("if") { Some(self.expression()?) } else { None };
        let recursive = self.skip_name("recursive");
        self.loops += 1;
        let body = self.block(&["endfor", "else"])?;
        self.loops -= 1;
        let otherwise = if self.skip_name("else") { self.closed_block(&["endfor"])? } else { self.next_is_end() };
        Ok(Stmt::For(Rc::new(For { target, iterable, test, body, otherwise, recursive })))
    }

    fn next_is_end(&mut self) -> Body {
        self.next();
        Vec::new()
    }

    fn conditional(&mut self) -> Result<Stmt> {
        let mut branches = Vec::new();
        loop {
            let test = self.tuple(false, &[], false)?;
            branches.push((test, self.block(&["elif", "else", "endif"])?));
            if self.skip_name("elif") {
                continue;
            }
            let otherwise = if self.skip_name("else") { self.closed_block(&["endif"])? } else { self.next_is_end() };
            return Ok(Stmt::If(branches, otherwise));
        }
    }

    fn assignment(&mut self) -> Result<Stmt> {
        let target = self.target(&[], true)?;
        if self.skip_op("=") {
            return Ok(Stmt::Set(target, self.tuple(true, &[], false)?));
        }
        let mut filter = Expr::FilterInput;
        if self.skip_op("|") {
            filter = self.filter_chain(filter)?;
        }
        Ok(Stmt::SetBlock(target, filter, self.closed_block(&["endset"])?))
    }

    fn filter_chain(&mut self, input: Expr) -> Result<Expr> {
        let mut filter = self.filter(input)?;
        while self.skip_op("|") {
            filter = self.filter(filter)?;
        }
        Ok(filter)
    }

    fn with(&mut self) -> Result<Stmt> {
        let mut values = Vec::new();
        while *self.peek() != Token::TagEnd {
            if !values.is_empty() {
                self.expect_op(",")?;
            }
            let target = self.target(&[], false)?;
            self.expect_op("=")?;
            values.push((target, self.expression()?));
        }
        Ok(Stmt::With(values, self.closed_block(&["endwith"])?))
    }

    fn signature(&mut self) -> Result<(Vec<Rc<str>>, Vec<Expr>)> {
        let (mut parameters, mut defaults) = (Vec::new(), Vec::new());
        self.expect_op("(")?;
        while !self.is_op(")") {
            if !parameters.is_empty() {
                self.expect_op(",")?;
            }
            parameters.push(self.target_name()?);
            if self.skip_op("=") {
                defaults.push(self.expression()?);
            } else if !defaults.is_empty() {
                return self.error("non-default argument follows default argument");
            }
        }
        self.expect_op(")")?;
        Ok((parameters, defaults))
    }

    fn macro_body(
        &mut self,
        name: Rc<str>,
        signature: (Vec<Rc<str>>, Vec<Expr>),
        end: &'static [&'static str],
    ) -> Result<Rc<Macro>> {
        let loops = std::mem::take(&mut self.loops);
        self.uses.push(Uses::default());
        let body = self.closed_block(end)?;
        let uses = self.uses.pop().unwrap_or_default();
        self.loops = loops;
        let (parameters, defaults) = signature;
        Ok(Rc::new(Macro { name, parameters, defaults, body, uses }))
    }

    fn macro_definition(&mut self) -> Result<Stmt> {
        let name = self.target_name()?;
        let signature = self.signature()?;
        Ok(Stmt::Macro(self.macro_body(name, signature, &["endmacro"])?))
    }

    fn call_block(&mut self) -> Result<Stmt> {
        let signature = if self.is_op("(") { self.signature()? } else { Default::default() };
        let (callee, arguments): (Expr, Arguments) = match self.expression()? {
            Expr::Call(callee, arguments) => (*callee, arguments),
            _ => return self.error("expected call"),
        };
        let caller = self.macro_body(Rc::from("caller"), signature, &["endcall"])?;
        Ok(Stmt::CallBlock(callee, arguments, caller))
    }

    fn target_name(&mut self) -> Result<Rc<str>> {
        let name = self.name()?;
        if matches!(&*name, "true" | "false" | "none" | "True" | "False" | "None") {
            return self.error(format!("can't assign to '{name}'"));
        }
        Ok(name)
    }

    /// What stands left of "=" or "in": names, several with commas between them, in parentheses or not.
    fn target(&mut self, ends: &[&str], with_namespace: bool) -> Result<Target> {
        let mut targets = Vec::new();
        let mut is_tuple = false;
        loop {
            let ended = self.is_op(")") || ends.iter().any(|name| self.is_name(name));
            if is_tuple && (ended || *self.peek() == Token::TagEnd) {
                break;
            }
            targets.push(self.one_target(with_namespace)?);
            if !self.skip_op(",") {
                break;
            }
            is_tuple = true;
        }
        match targets.pop() {
            Some(target) if !is_tuple => Ok(target),
            Some(target) => {
                targets.push(target);
                Ok(Target::Tuple(targets))
            }
            None => self.unexpected("a name"),
        }
    }

    fn one_target(&mut self, with_namespace: bool) -> Result<Target> {
        check_stack()?;
        if self.skip_op("(") {
            let inner = self.target(&[], with_namespace)?;
            self.expect_op(")")?;
            return Ok(inner);
        }
        let name = self.target_name()?;
        if with_namespace && self.skip_op(".") {
            return Ok(Target::Attribute(name, self.name()?));
        }
        Ok(Target::Name(name))
    }
}
