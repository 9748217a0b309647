//! A template as the parser understood it.

use std::rc::Rc;

use super::value::Value;

pub enum Expr {
    Const(Value),
    Name(Rc<str>),
    Tuple(Vec<Expr>),
    List(Vec<Expr>),
    Dict(Vec<(Expr, Expr)>),
    If(Box<Expr>, Box<Expr>, Option<Box<Expr>>), // test, then, else
    Or(Box<Expr>, Box<Expr>),
    And(Box<Expr>, Box<Expr>),
    Not(Box<Expr>),
    Compare(Box<Expr>, Vec<(Comparison, Expr)>),
    Binary(Operator, Box<Expr>, Box<Expr>),
    Concat(Vec<Expr>),
    Negative(Box<Expr>),
    Positive(Box<Expr>),
    Attribute(Box<Expr>, Rc<str>),
    Item(Box<Expr>, Box<Expr>),
    Slice(Box<Expr>, [Option<Box<Expr>>; 3]),
    Call(Box<Expr>, Arguments),
    Filter(Box<Expr>, Rc<str>, Arguments),
    Test(Box<Expr>, Rc<str>, Arguments),
    FilterInput, // the text of a filter block or of a set block with filters
}

#[derive(Default)]
pub struct Arguments {
    pub positional: Vec<Expr>,
    pub named: Vec<(Rc<str>, Expr)>,
    pub rest: Option<Box<Expr>>,       // *rest
    pub named_rest: Option<Box<Expr>>, // **named_rest
}

#[derive(Clone, Copy, PartialEq)]
pub enum Comparison {
    Equal,
    NotEqual,
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
    In,
    NotIn,
}

#[derive(Clone, Copy, PartialEq)]
pub enum Operator {
    Add,
    Subtract,
    Multiply,
    Divide,
    FloorDivide,
    Modulo,
    Power,
}

pub enum Target {
    Name(Rc<str>),
    Attribute(Rc<str>, Rc<str>), // of a namespace
    Tuple(Vec<Target>),
}

pub type Body = Vec<Stmt>;

pub enum Stmt {
    Text(Rc<str>),
    Print(Expr),
    If(Vec<(Expr, Body)>, Body),
    For(Rc<For>),
    Set(Target, Expr),
    SetBlock(Target, Expr, Body),
    FilterBlock(Expr, Body),
    With(Vec<(Target, Expr)>, Body),
    Macro(Rc<Macro>),
    CallBlock(Expr, Arguments, Rc<Macro>), // what is called, and the block as its caller
    Generation(Body),
    Break,
    Continue,
}

pub struct For {
    pub target: Target,
    pub iterable: Expr,
    pub test: Option<Expr>,
    pub body: Body,
    pub otherwise: Body,
    pub recursive: bool,
}

pub struct Macro {
    pub name: Rc<str>,
    pub parameters: Vec<Rc<str>>,
    pub defaults: Vec<Expr>, // of the last parameters
    pub body: Body,
    pub uses: Uses,
}

/// Which of a macro's special names its body reads.
#[derive(Clone, Copy, Default)]
pub struct Uses {
    pub caller: bool,
    pub kwargs: bool,
    pub varargs: bool,
}
