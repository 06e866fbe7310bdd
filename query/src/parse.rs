//! Parses the text of a query. It checks what the text alone can show; it does not know the table.

use crate::error::{Result, wrong};
use crate::literal::Literal;
use crate::predicate::{Compare, Operand, Predicate};
use crate::token::{Placed, Token, tokens};
use duramen::query::{Aggregate, Column};

/// The maximum nesting of parentheses and NOT, so that no text exhausts the stack.
const MAX_NESTING: usize = 64;
/// The maximum length of the lists of TOP and BOTTOM.
const MAX_LIST: usize = 1 << 20;

/// A parsed query.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Parsed {
    /// Each aggregate with its name and its position in the text.
    pub(crate) aggregates: Vec<(Aggregate, String, usize)>,
    pub(crate) table: String,
    pub(crate) predicate: Option<Predicate>,
    /// The positions where the predicate first uses each column.
    pub(crate) key_at: Option<usize>,
    pub(crate) value_at: Option<usize>,
}

struct Parser {
    tokens: Vec<Placed>,
    at: usize,
    nesting: usize,
    key_at: Option<usize>,
    value_at: Option<usize>,
}

/// Parses a query.
pub(crate) fn parse(text: &str) -> Result<Parsed> {
    let mut parser = Parser { tokens: tokens(text)?, at: 0, nesting: 0, key_at: None, value_at: None };
    if parser.peek().is("SELECT") {
        parser.next();
    }
    let mut aggregates = Vec::new();
    loop {
        let place = parser.place();
        let aggregate = parser.aggregate()?;
        aggregates.push((aggregate, name(&aggregate), place));
        if !parser.accept(",") {
            break;
        }
    }
    parser.keyword("FROM")?;
    let table = parser.table()?;
    (parser.key_at, parser.value_at) = (None, None);
    let predicate = if parser.peek().is("WHERE") {
        parser.next();
        Some(parser.any_of()?)
    } else {
        None
    };
    parser.accept(";");
    match parser.peek() {
        Token::End => Ok(Parsed { aggregates, table, predicate, key_at: parser.key_at, value_at: parser.value_at }),
        Token::Sign("-") if predicate.is_none() => {
            let advice = "expected WHERE or the end, found \"-\": put a name with other characters in double quotes";
            Err(wrong(parser.place(), advice))
        }
        other => {
            let expected = if predicate.is_some() { "AND, OR or the end" } else { "WHERE or the end" };
            Err(wrong(parser.place(), format!("expected {expected}, found {}", other.shown())))
        }
    }
}

/// The name of an aggregate, as in a query.
fn name(aggregate: &Aggregate) -> String {
    let column = |column: Column| if column == Column::Key { "key" } else { "value" };
    match *aggregate {
        Aggregate::Count => "COUNT(*)".to_owned(),
        Aggregate::Sum(of) => format!("SUM({})", column(of)),
        Aggregate::Average(of) => format!("AVERAGE({})", column(of)),
        Aggregate::Min(of) => format!("MIN({})", column(of)),
        Aggregate::Max(of) => format!("MAX({})", column(of)),
        Aggregate::CountDistinct(of) => format!("COUNT(DISTINCT {})", column(of)),
        Aggregate::Distinct(of) => format!("DISTINCT({})", column(of)),
        Aggregate::Top(of, most) => format!("TOP({}, {most})", column(of)),
        Aggregate::Bottom(of, most) => format!("BOTTOM({}, {most})", column(of)),
    }
}

impl Parser {
    fn placed(&self) -> (&Token, usize) {
        self.tokens.get(self.at).or(self.tokens.last()).map_or((&Token::End, 1), |(token, at)| (token, *at))
    }

    fn peek(&self) -> &Token {
        self.placed().0
    }

    fn place(&self) -> usize {
        self.placed().1
    }

    fn next(&mut self) -> Placed {
        let (token, at) = self.placed();
        let placed = (token.clone(), at);
        self.at += 1;
        placed
    }

    fn accept(&mut self, sign: &str) -> bool {
        let there = matches!(self.peek(), Token::Sign(found) if *found == sign);
        self.at += usize::from(there);
        there
    }

    fn sign(&mut self, sign: &str) -> Result<()> {
        if self.accept(sign) { Ok(()) } else { self.expected(&format!("\"{sign}\"")) }
    }

    fn keyword(&mut self, keyword: &str) -> Result<()> {
        if self.peek().is(keyword) {
            self.next();
            return Ok(());
        }
        self.expected(keyword)
    }

    fn expected<T>(&self, what: &str) -> Result<T> {
        Err(wrong(self.place(), format!("expected {what}, found {}", self.peek().shown())))
    }

    fn aggregate(&mut self) -> Result<Aggregate> {
        const ALL: &str = "COUNT, SUM, AVERAGE, MIN, MAX, DISTINCT, TOP or BOTTOM";
        let word = match self.peek() {
            Token::Word(word) => word.to_ascii_uppercase(),
            _ => return self.expected(ALL),
        };
        if !["COUNT", "SUM", "AVERAGE", "AVG", "MIN", "MAX", "DISTINCT", "TOP", "BOTTOM"].contains(&word.as_str()) {
            return self.expected(ALL);
        }
        self.next();
        self.sign("(")?;
        if word == "COUNT" && self.accept("*") {
            return self.sign(")").map(|()| Aggregate::Count);
        }
        let distinct = self.peek().is("DISTINCT") && word == "COUNT";
        if distinct {
            self.next();
        }
        let column = self.column()?;
        let aggregate = match word.as_str() {
            "COUNT" if distinct => Aggregate::CountDistinct(column),
            "COUNT" => Aggregate::Count,
            "SUM" => Aggregate::Sum(column),
            "AVERAGE" | "AVG" => Aggregate::Average(column),
            "MIN" => Aggregate::Min(column),
            "MAX" => Aggregate::Max(column),
            "DISTINCT" => Aggregate::Distinct(column),
            _ => {
                self.sign(",")?;
                let most = self.length()?;
                if word == "TOP" { Aggregate::Top(column, most) } else { Aggregate::Bottom(column, most) }
            }
        };
        self.sign(")").map(|()| aggregate)
    }

    /// Parses the length of a list.
    fn length(&mut self) -> Result<usize> {
        match self.next() {
            (Token::Number(digits), at) => {
                let most = digits.parse().ok().filter(|most| (1..=MAX_LIST).contains(most));
                most.ok_or_else(|| wrong(at, format!("expected a whole number from 1 to {MAX_LIST}, found {digits}")))
            }
            (other, at) => Err(wrong(at, format!("expected the number of results, found {}", other.shown()))),
        }
    }

    fn column(&mut self) -> Result<Column> {
        let (column, seen) = match self.peek() {
            word if word.is("KEY") => (Column::Key, &mut self.key_at),
            word if word.is("VALUE") || word.is("RECORD") => (Column::Value, &mut self.value_at),
            _ => return self.expected("key or value"),
        };
        let place = self.tokens.get(self.at).map_or(1, |(_, at)| *at);
        seen.get_or_insert(place);
        self.at += 1;
        Ok(column)
    }

    fn table(&mut self) -> Result<String> {
        match self.next() {
            (Token::Word(name) | Token::Quoted(name), _) => Ok(name),
            (other, at) => Err(wrong(at, format!("expected the name of a table, found {}", other.shown()))),
        }
    }

    fn any_of(&mut self) -> Result<Predicate> {
        self.several("OR", Parser::all_of, Predicate::Or)
    }

    fn all_of(&mut self) -> Result<Predicate> {
        self.several("AND", Parser::one, Predicate::And)
    }

    /// Parses one or more parts with a keyword between them. A single part is returned unchanged.
    fn several(
        &mut self,
        keyword: &str,
        part: fn(&mut Parser) -> Result<Predicate>,
        joined: fn(Vec<Predicate>) -> Predicate,
    ) -> Result<Predicate> {
        let first = part(self)?;
        if !self.peek().is(keyword) {
            return Ok(first);
        }
        let mut parts = vec![first];
        while self.peek().is(keyword) {
            self.next();
            parts.push(part(self)?);
        }
        Ok(joined(parts))
    }

    fn one(&mut self) -> Result<Predicate> {
        self.nesting += 1;
        if self.nesting > MAX_NESTING {
            return Err(wrong(self.place(), format!("parentheses or NOTs are nested more than {MAX_NESTING} deep")));
        }
        let one = if self.peek().is("NOT") {
            self.next();
            Predicate::Not(Box::new(self.one()?))
        } else if self.accept("(") {
            let inner = self.any_of()?;
            self.sign(")")?;
            inner
        } else {
            self.comparison()?
        };
        self.nesting -= 1;
        Ok(one)
    }

    fn comparison(&mut self) -> Result<Predicate> {
        let column = self.column()?;
        let modulo = if self.accept("%") { Some(self.divisor()?) } else { None };
        let operand = Operand { column, modulo };
        let not = self.peek().is("NOT");
        if not {
            self.next();
        }
        if not || self.peek().is("IN") {
            self.keyword("IN")?;
            let within = Predicate::In(operand, self.list()?);
            return Ok(if not { Predicate::Not(Box::new(within)) } else { within });
        }
        let compare = match self.peek() {
            Token::Sign("=" | "==") => Compare::Equal,
            Token::Sign("!=" | "<>") => Compare::NotEqual,
            Token::Sign("<") => Compare::Less,
            Token::Sign("<=") => Compare::AtMost,
            Token::Sign(">") => Compare::Greater,
            Token::Sign(">=") => Compare::AtLeast,
            _ => return self.expected("a comparison, % or IN"),
        };
        self.next();
        Ok(Predicate::Compare(operand, compare, self.number()?))
    }

    fn list(&mut self) -> Result<Vec<Literal>> {
        self.sign("(")?;
        let mut numbers = vec![self.number()?];
        while self.accept(",") {
            numbers.push(self.number()?);
        }
        self.sign(")").map(|()| numbers)
    }

    fn divisor(&mut self) -> Result<u64> {
        match self.next() {
            (Token::Number(digits), at) => {
                let by = digits.parse().ok().filter(|by| *by > 0);
                by.ok_or_else(|| wrong(at, format!("expected a whole number above 0 to divide by, found {digits}")))
            }
            (other, at) => Err(wrong(at, format!("expected a number to divide by, found {}", other.shown()))),
        }
    }

    fn number(&mut self) -> Result<Literal> {
        let negative = self.accept("-");
        let (Token::Number(digits), at) = self.next() else {
            self.at -= 1;
            return self.expected("a number");
        };
        Literal::parse(&digits, negative).ok_or_else(|| wrong(at, format!("{digits} is not a number")))
    }
}
