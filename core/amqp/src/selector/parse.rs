//! Words → an expression, by descent. OR binds least, then AND, NOT, comparisons, + and −, * and /, signs.
//!
//! Chains of one operator are one node, so only parentheses, NOT and signs nest: at most [`DEPTH_MAX`] deep.

use super::like::Pattern;
use super::words::{Keyword, Word, Words};
use super::{Comparison, DEPTH_MAX, Expression, Operator, SelectorError};

pub fn expression(words: &Words) -> Result<Expression, SelectorError> {
    let mut parser = Parser { words, next: 0 };
    if words.words.is_empty() {
        return Err(parser.wrong("it is empty"));
    }
    let at = parser.at();
    let found = parser.any(0)?;
    if parser.peek().is_some() {
        return Err(parser.wrong("AND, OR or the end was expected"));
    }
    condition(found, at)
}

struct Parser<'a> {
    words: &'a Words,
    next: usize,
}

/// What may stand on a side of AND, OR and NOT, and alone.
fn condition(found: Expression, at: usize) -> Result<Expression, SelectorError> {
    match found {
        Expression::Text(_)
        | Expression::Exact(_)
        | Expression::Approximate(_)
        | Expression::Negative(_)
        | Expression::Arithmetic(..) => {
            Err(SelectorError { at, why: "a condition was expected, not a text or a number".to_owned() })
        }
        found => Ok(found),
    }
}

/// What may stand in a comparison or in arithmetic.
fn operand(found: Expression, at: usize) -> Result<Expression, SelectorError> {
    match found {
        Expression::Text(_)
        | Expression::Exact(_)
        | Expression::Approximate(_)
        | Expression::Bool(_)
        | Expression::Identifier(_)
        | Expression::Negative(_)
        | Expression::Arithmetic(..) => Ok(found),
        _ => Err(SelectorError { at, why: "a value was expected, not a condition".to_owned() }),
    }
}

impl Parser<'_> {
    fn peek(&self) -> Option<&Word> {
        self.words.words.get(self.next).map(|word| &word.1)
    }

    fn at(&self) -> usize {
        self.words.words.get(self.next).map_or(self.words.end, |word| word.0)
    }

    fn wrong(&self, why: &str) -> SelectorError {
        SelectorError { at: self.at(), why: why.to_owned() }
    }

    fn has(&mut self, wanted: &Word) -> bool {
        let is_there = self.peek() == Some(wanted);
        self.next += usize::from(is_there);
        is_there
    }

    fn has_keyword(&mut self, wanted: Keyword) -> bool {
        self.has(&Word::Keyword(wanted))
    }

    fn must_have(&mut self, wanted: &Word, name: &str) -> Result<(), SelectorError> {
        if self.has(wanted) { Ok(()) } else { Err(self.wrong(&format!("{name} was expected"))) }
    }

    fn text(&mut self) -> Result<String, SelectorError> {
        let Some(Word::Text(text)) = self.peek() else { return Err(self.wrong("a text in ' was expected")) };
        let text = text.clone();
        self.next += 1;
        Ok(text)
    }

    fn any(&mut self, depth: usize) -> Result<Expression, SelectorError> {
        self.chain(depth, Keyword::Or, Self::all, Expression::Any)
    }

    fn all(&mut self, depth: usize) -> Result<Expression, SelectorError> {
        self.chain(depth, Keyword::And, Self::not, Expression::All)
    }

    fn chain(
        &mut self,
        depth: usize,
        keyword: Keyword,
        part: fn(&mut Self, usize) -> Result<Expression, SelectorError>,
        make: fn(Vec<Expression>) -> Expression,
    ) -> Result<Expression, SelectorError> {
        let at = self.at();
        let first = part(self, depth)?;
        if self.peek() != Some(&Word::Keyword(keyword)) {
            return Ok(first);
        }
        let mut parts = vec![condition(first, at)?];
        while self.has_keyword(keyword) {
            let at = self.at();
            let next = part(self, depth)?;
            parts.push(condition(next, at)?);
        }
        Ok(make(parts))
    }

    fn deeper(&self, depth: usize) -> Result<usize, SelectorError> {
        if depth < DEPTH_MAX { Ok(depth + 1) } else { Err(self.wrong("it is nested too deep")) }
    }

    fn not(&mut self, depth: usize) -> Result<Expression, SelectorError> {
        if !self.has_keyword(Keyword::Not) {
            return self.comparison(depth);
        }
        let (at, depth) = (self.at(), self.deeper(depth)?);
        let found = self.not(depth)?;
        Ok(Expression::Not(Box::new(condition(found, at)?)))
    }

    fn comparison(&mut self, depth: usize) -> Result<Expression, SelectorError> {
        let at = self.at();
        let left = self.sum(depth)?;
        if let Some(comparison) = self.comparison_sign() {
            let left = Box::new(operand(left, at)?);
            let at = self.at();
            let right = self.sum(depth)?;
            return Ok(Expression::Compare(left, comparison, Box::new(operand(right, at)?)));
        }
        if self.has_keyword(Keyword::Is) {
            let is_not = self.has_keyword(Keyword::Not);
            self.must_have(&Word::Keyword(Keyword::Null), "NULL")?;
            return Ok(Expression::IsNull(identifier(left, at)?, is_not));
        }
        let is_not = self.has_keyword(Keyword::Not);
        if self.has_keyword(Keyword::Between) {
            self.between(left, at, is_not, depth)
        } else if self.has_keyword(Keyword::In) {
            Ok(Expression::In(identifier(left, at)?, self.list()?, is_not))
        } else if self.has_keyword(Keyword::Like) {
            self.like(identifier(left, at)?, is_not)
        } else if is_not {
            Err(self.wrong("BETWEEN, IN or LIKE was expected"))
        } else {
            Ok(left)
        }
    }

    fn comparison_sign(&mut self) -> Option<Comparison> {
        let Some(Word::Sign(sign)) = self.peek() else { return None };
        let found = match *sign {
            "=" => Comparison::Equal,
            "<>" => Comparison::Unequal,
            "<" => Comparison::Less,
            "<=" => Comparison::LessOrEqual,
            ">" => Comparison::Greater,
            ">=" => Comparison::GreaterOrEqual,
            _ => return None,
        };
        self.next += 1;
        Some(found)
    }

    fn between(
        &mut self,
        value: Expression,
        at: usize,
        is_not: bool,
        depth: usize,
    ) -> Result<Expression, SelectorError> {
        let value = operand(value, at)?;
        let at = self.at();
        let low = self.sum(depth)?;
        let low = operand(low, at)?;
        self.must_have(&Word::Keyword(Keyword::And), "AND")?;
        let at = self.at();
        let high = self.sum(depth)?;
        Ok(Expression::Between(Box::new([value, low, operand(high, at)?]), is_not))
    }

    fn list(&mut self) -> Result<Vec<String>, SelectorError> {
        self.must_have(&Word::Sign("("), "(")?;
        let mut texts = vec![self.text()?];
        while self.has(&Word::Sign(",")) {
            texts.push(self.text()?);
        }
        self.must_have(&Word::Sign(")"), ")")?;
        Ok(texts)
    }

    fn like(&mut self, name: String, is_not: bool) -> Result<Expression, SelectorError> {
        let at = self.at();
        let pattern = self.text()?;
        let mut escape = None;
        if self.has_keyword(Keyword::Escape) {
            let mut characters = self.text()?.chars().collect::<Vec<_>>();
            escape = characters.pop().filter(|_| characters.is_empty());
            if escape.is_none() {
                return Err(self.wrong("ESCAPE takes one character"));
            }
        }
        let pattern = Pattern::new(&pattern, escape).ok_or_else(|| SelectorError {
            at,
            why: "the escape character stands before _, % or itself".to_owned(),
        })?;
        Ok(Expression::Like(name, pattern, is_not))
    }

    fn sum(&mut self, depth: usize) -> Result<Expression, SelectorError> {
        self.arithmetic(depth, [("+", Operator::Plus), ("-", Operator::Minus)], Self::product)
    }

    fn product(&mut self, depth: usize) -> Result<Expression, SelectorError> {
        self.arithmetic(depth, [("*", Operator::Times), ("/", Operator::Over)], Self::signed)
    }

    fn arithmetic(
        &mut self,
        depth: usize,
        operators: [(&'static str, Operator); 2],
        part: fn(&mut Self, usize) -> Result<Expression, SelectorError>,
    ) -> Result<Expression, SelectorError> {
        let at = self.at();
        let first = part(self, depth)?;
        let mut others = Vec::new();
        while let Some((_, operator)) = operators.iter().find(|one| self.has(&Word::Sign(one.0))) {
            let at = self.at();
            let next = part(self, depth)?;
            others.push((*operator, operand(next, at)?));
        }
        if others.is_empty() {
            return Ok(first);
        }
        Ok(Expression::Arithmetic(Box::new(operand(first, at)?), others))
    }

    fn signed(&mut self, depth: usize) -> Result<Expression, SelectorError> {
        let is_negative = self.has(&Word::Sign("-"));
        if !is_negative && !self.has(&Word::Sign("+")) {
            return self.primary(depth);
        }
        if is_negative && let Some(Word::Exact(number)) = self.peek() {
            let number = 0i64.wrapping_sub_unsigned(*number);
            self.next += 1;
            return Ok(Expression::Exact(number));
        }
        let (at, depth) = (self.at(), self.deeper(depth)?);
        let found = self.signed(depth)?;
        let found = operand(found, at)?;
        Ok(if is_negative { Expression::Negative(Box::new(found)) } else { found })
    }

    fn primary(&mut self, depth: usize) -> Result<Expression, SelectorError> {
        if self.has(&Word::Sign("(")) {
            let depth = self.deeper(depth)?;
            let found = self.any(depth)?;
            self.must_have(&Word::Sign(")"), ")")?;
            return Ok(found);
        }
        let found = match self.peek() {
            Some(Word::Text(text)) => Expression::Text(text.clone()),
            Some(Word::Exact(number)) => match i64::try_from(*number) {
                Ok(number) => Expression::Exact(number),
                Err(_) => return Err(self.wrong("the number is too large")),
            },
            Some(Word::Approximate(bits)) => Expression::Approximate(*bits),
            Some(Word::Identifier(name)) => Expression::Identifier(name.clone()),
            Some(Word::Keyword(Keyword::True)) => Expression::Bool(true),
            Some(Word::Keyword(Keyword::False)) => Expression::Bool(false),
            _ => return Err(self.wrong("an identifier, a literal or ( was expected")),
        };
        self.next += 1;
        Ok(found)
    }
}

fn identifier(found: Expression, at: usize) -> Result<String, SelectorError> {
    match found {
        Expression::Identifier(name) => Ok(name),
        _ => Err(SelectorError { at, why: "IS NULL, IN and LIKE need an identifier before them".to_owned() }),
    }
}
