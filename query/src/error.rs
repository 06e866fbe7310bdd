//! [`enum@Error`]: what is wrong with a query.

/// `Result` with the [`enum@Error`] of a query.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The errors of parsing and running a query.
#[derive(thiserror::Error, Debug)]
#[non_exhaustive]
pub enum Error {
    /// The text is wrong, or uses a column that does not have numbers.
    #[error("the query cannot be run: at character {at}, {why}")]
    Text {
        /// The position in the text, in characters from 1.
        at: usize,
        /// A description of the error, and the expected text.
        why: String,
    },
    /// The engine cannot run the query.
    #[error(transparent)]
    Engine(#[from] duramen::Error),
}

/// An error at a position of the text.
pub(crate) fn wrong(at: usize, why: impl Into<String>) -> Error {
    Error::Text { at, why: why.into() }
}
