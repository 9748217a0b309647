//! Tokens to expressions, with the precedence of Jinja2's parser. Statements are in statements.rs.

use std::rc::Rc;

use super::ast::{Arguments, Comparison, Expr, Operator, Uses};
use super::check_stack;
use super::lexer::{tokenize, Token};
use super::value::{fail, Result, Value};

/// So many operators may follow each other in one expression: more would be a tree too deep to walk.
const MAX_CHAIN: usize = 1000;

pub struct Parser {
    tokens: Vec<(Token, usize)>,
    position: usize,
    pub(super) uses: Vec<Uses>, // of the macros around this place
    pub(super) loops: usize,    // around this place, within the innermost macro
    pub(super) ends: Vec<&'static [&'static str]>,
}

impl Parser {
    pub fn new(source: &str) -> Result<Parser> {
        let tokens = tokenize(source)?;
        Ok(Parser { tokens, position: 0, uses: Vec::new(), loops: 0, ends: Vec::new() })
    }

    pub(super) fn peek(&self) -> &Token {
        &self.tokens[self.position].0
    }

    pub(super) fn peek_second(&self) -> &Token {
        &self.tokens[(self.position + 1).min(self.tokens.len() - 1)].0
    }

    pub(super) fn next(&mut self) -> Token {
        let token = self.peek().clone();
        self.position = (self.position + 1).min(self.tokens.len() - 1);
        token
    }

    pub(super) fn error<T>(&self, message: impl AsRef<str>) -> Result<T> {
        fail(format!("{} (line {})", message.as_ref(), self.tokens[self.position].1))
    }

    pub(super) fn unexpected<T>(&self, wanted: &str) -> Result<T> {
        let found = match self.peek() {
            Token::End => "end of template".to_string(),
            Token::Name(name) => format!("'{name}'"),
            Token::Op(operator) => format!("'{operator}'"),
            Token::TagEnd => "end of statement block".to_string(),
            Token::PrintEnd => "end of print statement".to_string(),
            Token::Str(text) => format!("{text:?}"),
            Token::Int(value) => value.to_string(),
            Token::Float(value) => value.to_string(),
            _ => "text".to_string(),
        };
        self.error(format!("expected {wanted}, got {found}"))
    }

    pub(super) fn is_op(&self, operator: &str) -> bool {
        matches!(self.peek(), Token::Op(found) if *found == operator)
    }

    pub(super) fn is_name(&self, name: &str) -> bool {
        matches!(self.peek(), Token::Name(found) if &**found == name)
    }

    pub(super) fn skip_op(&mut self, operator: &str) -> bool {
        let found = self.is_op(operator);
        if found {
            self.next();
        }
        found
    }

    pub(super) fn skip_name(&mut self, name: &str) -> bool {
        let found = self.is_name(name);
        if found {
            self.next();
        }
        found
    }

    pub(super) fn expect_op(&mut self, operator: &'static str) -> Result<()> {
        if self.skip_op(operator) {
            Ok(())
        } else {
            self.unexpected(&format!("'{operator}'"))
        }
    }

    pub(super) fn expect(&mut self, token: Token, what: &str) -> Result<()> {
        if *self.peek() != token {
            return self.unexpected(what);
        }
        self.next();
        Ok(())
    }

    pub(super) fn name(&mut self) -> Result<Rc<str>> {
        match self.peek() {
            Token::Name(_) => match self.next() {
                Token::Name(name) => Ok(name),
                _ => unreachable!(),
            },
            _ => self.unexpected("a name"),
        }
    }

    fn count(&self, links: &mut usize) -> Result<()> {
        *links += 1;
        if *links > MAX_CHAIN {
            return self.error(format!("an expression of more than {MAX_CHAIN} operators in a row"));
        }
        Ok(())
    }

    pub fn expression(&mut self) -> Result<Expr> {
        check_stack()?;
        let mut value = self.or()?;
        let mut links = 0;
        while self.skip_name("if") {
            self.count(&mut links)?;
            let test = self.or()?;
            let otherwise = if self.skip_name("else") { Some(Box::new(self.expression()?)) } else { None };
            value = Expr::If(Box::new(test), Box::new(value), otherwise);
        }
        Ok(value)
    }

    /// An expression, or several with commas between them: a tuple. `ends` are the names that may follow a last comma.
    pub(super) fn tuple(&mut self, with_if: bool, ends: &[&str], in_parentheses: bool) -> Result<Expr> {
        let mut items = Vec::new();
        let mut is_tuple = false;
        loop {
            let ended = matches!(self.peek(), Token::PrintEnd | Token::TagEnd | Token::Op(")"))
                || ends.iter().any(|name| self.is_name(name));
            if ended {
                break;
            }
            items.push(if with_if { self.expression()? } else { self.or()? });
            if !self.skip_op(",") {
                break;
            }
            is_tuple = true;
        }
        if is_tuple || (items.is_empty() && in_parentheses) {
            return Ok(Expr::Tuple(items));
        }
        match items.pop() {
            Some(item) => Ok(item),
            None => self.unexpected("an expression"),
        }
    }

    pub(super) fn or(&mut self) -> Result<Expr> {
        let mut left = self.and()?;
        let mut links = 0;
        while self.skip_name("or") {
            self.count(&mut links)?;
            left = Expr::Or(Box::new(left), Box::new(self.and()?));
        }
        Ok(left)
    }

    fn and(&mut self) -> Result<Expr> {
        let mut left = self.not()?;
        let mut links = 0;
        while self.skip_name("and") {
            self.count(&mut links)?;
            left = Expr::And(Box::new(left), Box::new(self.not()?));
        }
        Ok(left)
    }

    fn not(&mut self) -> Result<Expr> {
        check_stack()?;
        if self.skip_name("not") {
            return Ok(Expr::Not(Box::new(self.not()?)));
        }
        self.compare()
    }

    fn comparison(&mut self) -> Option<Comparison> {
        let comparison = match self.peek() {
            Token::Op("==") => Comparison::Equal,
            Token::Op("!=") => Comparison::NotEqual,
            Token::Op("<") => Comparison::Less,
            Token::Op("<=") => Comparison::LessEqual,
            Token::Op(">") => Comparison::Greater,
            Token::Op(">=") => Comparison::GreaterEqual,
            Token::Name(name) if &**name == "in" => Comparison::In,
            Token::Name(name) if &**name == "not" => match self.peek_second() {
                Token::Name(second) if &**second == "in" => {
                    self.next();
                    Comparison::NotIn
                }
                _ => return None,
            },
            _ => return None,
        };
        self.next();
        Some(comparison)
    }

    fn compare(&mut self) -> Result<Expr> {
        let first = self.sum()?;
        let mut others = Vec::new();
        while let Some(comparison) = self.comparison() {
            others.push((comparison, self.sum()?));
        }
        Ok(if others.is_empty() { first } else { Expr::Compare(Box::new(first), others) })
    }

    /// A chain of operators of one precedence, from the left.
    fn chain(&mut self, operators: &[(&str, Operator)], part: fn(&mut Parser) -> Result<Expr>) -> Result<Expr> {
        let mut left = part(self)?;
        let mut links = 0;
        while let Some((_, operator)) = operators.iter().find(|(text, _)| self.is_op(text)) {
            self.next();
            self.count(&mut links)?;
            left = Expr::Binary(*operator, Box::new(left), Box::new(part(self)?));
        }
        Ok(left)
    }

    fn sum(&mut self) -> Result<Expr> {
        self.chain(&[("+", Operator::Add), ("-", Operator::Subtract)], Parser::concat)
    }

    fn concat(&mut self) -> Result<Expr> {
        let first = self.product()?;
        if !self.is_op("~") {
            return Ok(first);
        }
        let mut parts = vec![first];
        while self.skip_op("~") {
            parts.push(self.product()?);
        }
        Ok(Expr::Concat(parts))
    }

    fn product(&mut self) -> Result<Expr> {
        let operators = [
            ("*", Operator::Multiply),
            ("/", Operator::Divide),
            ("//", Operator::FloorDivide),
            ("%", Operator::Modulo),
        ];
        self.chain(&operators, Parser::power)
    }

    fn power(&mut self) -> Result<Expr> {
        self.chain(&[("**", Operator::Power)], |parser| parser.unary(true))
    }

    fn unary(&mut self, with_filter: bool) -> Result<Expr> {
        check_stack()?;
        let value = if self.skip_op("-") {
            Expr::Negative(Box::new(self.unary(false)?))
        } else if self.skip_op("+") {
            Expr::Positive(Box::new(self.unary(false)?))
        } else {
            self.primary()?
        };
        let value = self.postfix(value)?;
        if with_filter {
            self.filters_and_tests(value)
        } else {
            Ok(value)
        }
    }

    pub(super) fn primary(&mut self) -> Result<Expr> {
        check_stack()?;
        match self.peek() {
            Token::Name(_) | Token::Str(_) | Token::Int(_) | Token::Float(_) => {}
            Token::Op("(" | "[" | "{") => {}
            _ => return self.unexpected("an expression"),
        }
        match self.next() {
            Token::Name(name) => Ok(self.named(name)),
            Token::Str(mut text) => {
                while let Token::Str(more) = self.peek() {
                    text.push_str(more);
                    self.next();
                }
                Ok(Expr::Const(Value::str(text)))
            }
            Token::Int(value) => Ok(Expr::Const(Value::Int(value))),
            Token::Float(value) => Ok(Expr::Const(Value::Float(value))),
            Token::Op("(") => {
                let inner = self.tuple(true, &[], true)?;
                self.expect_op(")")?;
                Ok(inner)
            }
            Token::Op("[") => self.list(),
            _ => self.dict(),
        }
    }

    fn named(&mut self, name: Rc<str>) -> Expr {
        match &*name {
            "true" | "True" => return Expr::Const(Value::Bool(true)),
            "false" | "False" => return Expr::Const(Value::Bool(false)),
            "none" | "None" => return Expr::Const(Value::None),
            _ => {}
        }
        for uses in &mut self.uses {
            uses.caller |= &*name == "caller";
            uses.kwargs |= &*name == "kwargs";
            uses.varargs |= &*name == "varargs";
        }
        Expr::Name(name)
    }

    fn list(&mut self) -> Result<Expr> {
        let mut items = Vec::new();
        while !self.is_op("]") {
            items.push(self.expression()?);
            if !self.skip_op(",") {
                break;
            }
        }
        self.expect_op("]")?;
        Ok(Expr::List(items))
    }

    fn dict(&mut self) -> Result<Expr> {
        let mut items = Vec::new();
        while !self.is_op("}") {
            let key = self.expression()?;
            self.expect_op(":")?;
            items.push((key, self.expression()?));
            if !self.skip_op(",") {
                break;
            }
        }
        self.expect_op("}")?;
        Ok(Expr::Dict(items))
    }

    pub(super) fn postfix(&mut self, value: Expr) -> Result<Expr> {
        let mut value = value;
        let mut links = 0;
        loop {
            self.count(&mut links)?;
            if self.is_op("(") {
                value = Expr::Call(Box::new(value), self.arguments()?);
            } else if self.skip_op("[") {
                value = self.subscript(value)?;
            } else if self.skip_op(".") {
                value = match self.next() {
                    Token::Name(name) => Expr::Attribute(Box::new(value), name),
                    Token::Int(index) => Expr::Item(Box::new(value), Box::new(Expr::Const(Value::Int(index)))),
                    _ => return self.error("expected name or number"),
                };
            } else {
                return Ok(value);
            }
        }
    }

    fn subscript(&mut self, value: Expr) -> Result<Expr> {
        let first = if self.is_op(":") { None } else { Some(Box::new(self.expression()?)) };
        if self.is_op(":") {
            let mut parts = [first, None, None];
            for part in &mut parts[1..] {
                if self.skip_op(":") && !self.is_op(":") && !self.is_op("]") {
                    *part = Some(Box::new(self.expression()?));
                }
            }
            self.expect_op("]")?;
            return Ok(Expr::Slice(Box::new(value), parts));
        }
        let Some(first) = first else { return self.unexpected("an expression") };
        if !self.is_op(",") {
            self.expect_op("]")?;
            return Ok(Expr::Item(Box::new(value), first));
        }
        let mut items = vec![*first];
        while self.skip_op(",") && !self.is_op("]") {
            items.push(self.expression()?);
        }
        self.expect_op("]")?;
        Ok(Expr::Item(Box::new(value), Box::new(Expr::Tuple(items))))
    }

    pub(super) fn arguments(&mut self) -> Result<Arguments> {
        let mut arguments = Arguments::default();
        self.expect_op("(")?;
        while !self.is_op(")") {
            let names_one = matches!(self.peek(), Token::Name(_)) && *self.peek_second() == Token::Op("=");
            let Arguments { positional, named, rest, named_rest } = &mut arguments;
            let in_order = if self.skip_op("*") {
                let in_order = rest.is_none() && named_rest.is_none();
                *rest = Some(Box::new(self.expression()?));
                in_order
            } else if self.skip_op("**") {
                let in_order = named_rest.is_none();
                *named_rest = Some(Box::new(self.expression()?));
                in_order
            } else if names_one {
                let name = self.name()?;
                self.next();
                named.push((name, self.expression()?));
                named_rest.is_none()
            } else {
                positional.push(self.expression()?);
                rest.is_none() && named_rest.is_none() && named.is_empty()
            };
            if !in_order {
                return self.error("invalid syntax for function call expression");
            }
            if !self.skip_op(",") {
                break;
            }
        }
        self.expect_op(")")?;
        Ok(arguments)
    }

    fn filters_and_tests(&mut self, value: Expr) -> Result<Expr> {
        let mut value = value;
        let mut links = 0;
        loop {
            self.count(&mut links)?;
            if self.skip_op("|") {
                value = self.filter(value)?;
            } else if self.skip_name("is") {
                value = self.test(value)?;
            } else if self.is_op("(") {
                value = Expr::Call(Box::new(value), self.arguments()?);
            } else {
                return Ok(value);
            }
        }
    }

    fn dotted_name(&mut self) -> Result<Rc<str>> {
        let mut name = self.name()?;
        while self.skip_op(".") {
            name = Rc::from(format!("{name}.{}", self.name()?));
        }
        Ok(name)
    }

    /// The filter whose name comes next, on `value`.
    pub(super) fn filter(&mut self, value: Expr) -> Result<Expr> {
        let name = self.dotted_name()?;
        let arguments = if self.is_op("(") { self.arguments()? } else { Arguments::default() };
        Ok(Expr::Filter(Box::new(value), name, arguments))
    }

    fn test(&mut self, value: Expr) -> Result<Expr> {
        let negated = self.skip_name("not");
        let name = self.dotted_name()?;
        let takes_one = match self.peek() {
            Token::Name(name) => !matches!(&**name, "else" | "or" | "and"),
            Token::Str(_) | Token::Int(_) | Token::Float(_) | Token::Op("[" | "{") => true,
            _ => false,
        };
        let arguments = if self.is_op("(") {
            self.arguments()?
        } else if self.is_name("is") {
            return self.error("You cannot chain multiple tests with is");
        } else if takes_one {
            let argument = self.primary()?;
            Arguments { positional: vec![self.postfix(argument)?], ..Arguments::default() }
        } else {
            Arguments::default()
        };
        let test = Expr::Test(Box::new(value), name, arguments);
        Ok(if negated { Expr::Not(Box::new(test)) } else { test })
    }
}
