//! Splits the text of a query into tokens, each with its position. `parse` gives them a meaning.

use crate::error::{Result, wrong};

/// A token.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Token {
    /// A name or a keyword, as it was written.
    Word(String),
    /// A name in double quotes.
    Quoted(String),
    /// A number without a sign.
    Number(String),
    /// One of `( ) , * % -` and the comparisons.
    Sign(&'static str),
    /// The end of the text.
    End,
}

/// A token, and the position of its first character, from 1.
pub(crate) type Placed = (Token, usize);

/// The longest first, so that `<=` is not read as `<`.
const SIGNS: [&str; 15] = ["<=", ">=", "==", "!=", "<>", "<", ">", "=", "(", ")", ",", "*", "%", "-", ";"];

/// The tokens of `text`; the last one is [`Token::End`].
pub(crate) fn tokens(text: &str) -> Result<Vec<Placed>> {
    let mut tokens = Vec::new();
    let (mut rest, mut at) = (text, 1);
    while let Some(first) = rest.chars().next() {
        let is_word = |c: char| c.is_alphanumeric() || c == '_';
        let (token, len) = if first.is_whitespace() {
            (None, first.len_utf8())
        } else if first.is_ascii_digit() {
            let len = number_len(rest, |c| is_word(c) || c == '.');
            (Some(Token::Number(front(rest, len).replace('_', ""))), len)
        } else if is_word(first) {
            let len = rest.find(|c: char| !is_word(c)).unwrap_or(rest.len());
            (Some(Token::Word(front(rest, len).to_owned())), len)
        } else if first == '"' {
            let inner = rest.get(1..).unwrap_or_default();
            let end = inner.find('"').ok_or_else(|| wrong(at, "the closing \" of a name is missing"))?;
            (Some(Token::Quoted(front(inner, end).to_owned())), end + 2)
        } else {
            let sign = SIGNS.iter().find(|sign| rest.starts_with(**sign));
            let sign = sign.ok_or_else(|| wrong(at, format!("{first:?} has no meaning here")))?;
            (Some(Token::Sign(sign)), sign.len())
        };
        tokens.extend(token.map(|token| (token, at)));
        at += front(rest, len).chars().count();
        rest = rest.get(len..).unwrap_or_default();
    }
    tokens.push((Token::End, at));
    Ok(tokens)
}

fn front(text: &str, len: usize) -> &str {
    text.get(..len).unwrap_or(text)
}

/// The length in bytes of the number at the front. Its exponent may have a sign.
fn number_len(text: &str, is_part: impl Fn(char) -> bool) -> usize {
    let len = |text: &str| text.find(|c: char| !is_part(c)).unwrap_or(text.len());
    let first = len(text);
    let (number, rest) = (front(text, first), text.get(first..).unwrap_or_default());
    let exponent = rest.strip_prefix(['-', '+']).filter(|digits| digits.starts_with(|c: char| c.is_ascii_digit()));
    match exponent {
        Some(digits) if number.ends_with(['e', 'E']) => first + 1 + len(digits),
        _ => first,
    }
}

impl Token {
    /// The token in an error message.
    pub(crate) fn shown(&self) -> String {
        match self {
            Token::Word(word) | Token::Number(word) => format!("\"{}\"", word.escape_debug()),
            Token::Quoted(name) => format!("the name \"{}\"", name.escape_debug()),
            Token::Sign(sign) => format!("\"{sign}\""),
            Token::End => "the end".to_owned(),
        }
    }

    /// True if the token is this keyword, in upper or lower case.
    pub(crate) fn is(&self, keyword: &str) -> bool {
        matches!(self, Token::Word(word) if word.eq_ignore_ascii_case(keyword))
    }
}
