//! `bindings/lua/tollbar/cdef.lua`, `cdef_redis.lua` and `cdef_rules.lua`: the headers'
//! declarations as LuaJIT's `ffi.cdef` reads them, which has no preprocessor.

use std::fmt::Write as _;
use std::path::Path;

/// The macros of a header, by what Lua makes of them.
#[derive(Default)]
struct Macros {
    /// Numbers of 32 bits, which become members of an enum.
    numbers: Vec<(String, String)>,
    /// Numbers of 64 bits and texts, which become Lua literals.
    values: Vec<(String, String)>,
}

/// Each header, and the copy of it.
const COPIES: [(&str, &str); 3] = [
    ("include/tollbar.h", "bindings/lua/tollbar/cdef.lua"),
    ("include/tollbar_redis.h", "bindings/lua/tollbar/cdef_redis.lua"),
    ("include/tollbar_rules.h", "bindings/lua/tollbar/cdef_rules.lua"),
];

pub fn run(root: &Path, check: bool) -> Result<String, String> {
    let mut said = Vec::new();
    for (from, to) in COPIES {
        let header =
            std::fs::read_to_string(root.join(from)).map_err(|e| format!("{from}: {e}"))?;
        let text = lua(from, &header)?;
        crate::settle(&root.join(to), &text, check)?;
        said.push(format!("{to}: {} lines", text.lines().count()));
    }
    Ok(said.join("\n"))
}

fn lua(from: &str, header: &str) -> Result<String, String> {
    let (macros, declarations) = split(&without_comments(from, header)?)?;
    let mut out = format!(
        "-- Written by `cargo xtask cdef` from {from}, which says what all of this means; changes belong there.\n\
         require(\"ffi\").cdef [[\nenum {{\n",
    );
    for (name, value) in &macros.numbers {
        let _ = writeln!(out, "    {name} = {value},");
    }
    let _ = write!(out, "}};\n{declarations}]]\n\nreturn {{\n");
    for (name, value) in &macros.values {
        let _ = writeln!(out, "    {name} = {value},");
    }
    out.push_str("}\n");
    Ok(out)
}

fn without_comments(from: &str, header: &str) -> Result<String, String> {
    let mut out = String::new();
    let mut rest = header;
    while let Some((code, comment)) = rest.split_once("/*") {
        out.push_str(code);
        rest =
            comment.split_once("*/").ok_or_else(|| format!("{from}: a comment without an end"))?.1;
    }
    out.push_str(rest);
    Ok(out.replace("\\\n", ""))
}

/// Splits a header into macros and declarations. Lines between `#ifdef __cplusplus` and its
/// `#endif` are left out.
fn split(code: &str) -> Result<(Macros, String), String> {
    let mut macros = Macros::default();
    let mut declarations = String::new();
    let mut cpp = false;
    for line in code.lines().map(str::trim_end).filter(|line| !line.is_empty()) {
        if let Some(macro_text) = line.strip_prefix("#define ") {
            sort(macro_text, &mut macros)?;
        } else if line.starts_with("#ifdef __cplusplus") {
            cpp = true;
        } else if line.starts_with("#endif") {
            cpp = false;
        } else if line.starts_with("static") {
            return Err(format!("a function body has no place in ffi.cdef: {line}"));
        } else if !line.starts_with('#') && !cpp {
            let _ = writeln!(declarations, "{line}");
        }
    }
    Ok((macros, declarations))
}

/// Sorts a macro by its kind. A macro that is neither a number, a text nor an initialiser is an
/// error.
fn sort(text: &str, macros: &mut Macros) -> Result<(), String> {
    let (name, value) = text.split_once(' ').unwrap_or((text, ""));
    let value = value.trim();
    let short = name.strip_prefix("TOLLBAR_").unwrap_or(name);
    if value.is_empty() || value.starts_with('{') || name.contains('(') {
        // The include guard, and initialisers, for which the Lua module has functions of its own.
    } else if value == "UINT64_MAX" {
        macros.values.push((short.to_owned(), "0xffffffffffffffffULL".to_owned()));
    } else if let Some(number) =
        value.strip_prefix("UINT64_C(").and_then(|rest| rest.strip_suffix(')'))
    {
        macros.values.push((short.to_owned(), format!("{number}ULL")));
    } else if value.starts_with('"') {
        macros.values.push((short.to_owned(), value.to_owned()));
    } else if value.chars().all(|c| c.is_ascii_alphanumeric() || " _()<>|-".contains(c)) {
        macros.numbers.push((name.to_owned(), value.strip_suffix('u').unwrap_or(value).to_owned()));
    } else {
        return Err(format!("a macro that ffi.cdef has no word for: {name}"));
    }
    Ok(())
}
