//! Source files as tokens, for the tests of this folder.

use proc_macro2::{Delimiter, TokenStream, TokenTree};
use std::path::{Path, PathBuf};

pub(crate) fn read(file: &Path) -> TokenStream {
    std::fs::read_to_string(file).unwrap().parse().unwrap_or_else(|e| panic!("{}: {e}", file.display()))
}

/// The source files of a folder and all below it.
pub(crate) fn files(folder: &Path) -> Vec<PathBuf> {
    files_of_type(folder, "rs")
}

/// The files of a folder and all below it whose names have this extension.
pub(crate) fn files_of_type(folder: &Path, extension: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files_of_type(&path, extension));
        } else if path.extension().is_some_and(|of_file| of_file == extension) {
            found.push(path);
        }
    }
    found
}

/// The module that a file is: `tree/cursor/step.rs` is `[tree, cursor, step]`, `tree/mod.rs` is `[tree]`.
pub(crate) fn module(file: &Path) -> Vec<String> {
    let mut module: Vec<String> =
        file.with_extension("").iter().map(|part| part.to_str().unwrap().to_owned()).collect();
    module.pop_if(|last| last == "mod");
    module
}

pub(crate) fn idents(tokens: &[TokenTree], names: &mut Vec<String>) {
    for token in tokens {
        match token {
            TokenTree::Ident(ident) => names.push(ident.to_string()),
            TokenTree::Group(group) => idents(&group.stream().into_iter().collect::<Vec<_>>(), names),
            _ => {}
        }
    }
}

pub(crate) fn is_ident(token: &TokenTree, name: &str) -> bool {
    matches!(token, TokenTree::Ident(ident) if ident == name)
}

pub(crate) fn is_punct(token: &TokenTree, char: char) -> bool {
    matches!(token, TokenTree::Punct(punct) if punct.as_char() == char)
}

pub(crate) fn is_path_separator(tokens: &[TokenTree]) -> bool {
    matches!(tokens, [first, second, ..] if is_punct(first, ':') && is_punct(second, ':'))
}

/// The paths that begin with the name at `at`, each as its names: one, or several where a group in braces ends it. `*`
/// stands for all names of a module.
pub(crate) fn paths(tokens: &[TokenTree], at: usize) -> Vec<Vec<String>> {
    let mut names = Vec::new();
    let mut at = at;
    loop {
        match tokens.get(at) {
            Some(TokenTree::Ident(name)) if name == "self" && !names.is_empty() => return vec![names],
            Some(TokenTree::Ident(name)) => names.push(name.to_string()),
            Some(TokenTree::Punct(all)) if all.as_char() == '*' => {
                names.push("*".to_owned());
                return vec![names];
            }
            Some(TokenTree::Group(group)) if group.delimiter() == Delimiter::Brace => {
                let inner: Vec<TokenTree> = group.stream().into_iter().collect();
                let branches = inner.split(|token| is_punct(token, ',')).filter(|branch| !branch.is_empty());
                let whole = |rest: Vec<String>| {
                    let rest = rest.into_iter().filter(|name| name != "self");
                    names.iter().cloned().chain(rest).collect()
                };
                return branches.flat_map(|branch| paths(branch, 0)).map(whole).collect();
            }
            _ => return vec![names],
        }
        if !is_path_separator(&tokens[at + 1..]) {
            return vec![names];
        }
        at += 3;
    }
}
