//! nginx's configuration as directives.

/// A directive with its words and its block.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Directive {
    pub line: usize,
    /// The name is the first word.
    pub words: Vec<String>,
    pub block: Vec<Directive>,
}

impl Directive {
    pub fn name(&self) -> &str {
        self.words.first().map_or("", String::as_str)
    }

    /// Whether a directive of that name stands in the block, at any depth.
    pub fn has(&self, name: &str) -> bool {
        self.block.iter().any(|inner| inner.name() == name || inner.has(name))
    }
}

/// The deepest nesting; nginx's own configurations have five levels.
const DEPTH_MOST: usize = 64;

/// All directives of a configuration, or the line of a fault and what it is.
pub fn directives(text: &str) -> Result<Vec<Directive>, (usize, String)> {
    // The directives of each open block; the last is the innermost.
    let mut open: Vec<Vec<Directive>> = vec![Vec::new()];
    let mut heads: Vec<Directive> = Vec::new();
    let mut current = Directive::default();
    let mut characters = text.chars().peekable();
    let mut line = 1;
    while let Some(c) = characters.next() {
        match c {
            '\n' => line += 1,
            c if c.is_whitespace() => {}
            '#' => while characters.next_if(|c| *c != '\n').is_some() {},
            ';' => {
                if current.words.is_empty() {
                    return Err((line, "\";\" without a directive; expected a directive before it".to_owned()));
                }
                let done = std::mem::take(&mut current);
                if let Some(block) = open.last_mut() {
                    block.push(done);
                }
            }
            '{' => {
                if current.words.is_empty() || open.len() > DEPTH_MOST {
                    return Err((
                        line,
                        "\"{\" without a directive, or in more than 64 others; expected a directive before it"
                            .to_owned(),
                    ));
                }
                heads.push(std::mem::take(&mut current));
                open.push(Vec::new());
            }
            '}' => {
                if !current.words.is_empty() {
                    return Err((line, format!("\"}}\" after {:?}; expected \";\" or \"{{\"", current.name())));
                }
                let (Some(mut head), Some(block)) = (heads.pop(), open.pop()) else {
                    return Err((line, "\"}\" without \"{\"; expected a directive".to_owned()));
                };
                head.block = block;
                if let Some(outer) = open.last_mut() {
                    outer.push(head);
                }
            }
            first => {
                if current.words.is_empty() {
                    current.line = line;
                }
                let begin = line;
                let quote = matches!(first, '"' | '\'').then_some(first);
                let mut word = String::new();
                if quote.is_none() {
                    word.push(first);
                }
                loop {
                    let variable = word.ends_with('$');
                    let next = match quote {
                        Some(_) => characters.next(),
                        // "${name}" has braces that open no block.
                        None => characters.next_if(|c| {
                            !(c.is_whitespace() || matches!(c, ';' | '{' | '}')) || (variable && *c == '{')
                        }),
                    };
                    match next {
                        None if quote.is_some() => {
                            return Err((begin, "a quote without an end; expected its end".to_owned()))
                        }
                        None => break,
                        Some(c) if Some(c) == quote => break,
                        Some('\\') => word.extend(characters.next()),
                        Some('{') if quote.is_none() => {
                            word.push('{');
                            while let Some(c) = characters.next_if(|c| *c != '\n') {
                                word.push(c);
                                if c == '}' {
                                    break;
                                }
                            }
                        }
                        Some(c) => {
                            line += usize::from(c == '\n');
                            word.push(c);
                        }
                    }
                }
                current.words.push(word);
            }
        }
    }
    if !current.words.is_empty() {
        return Err((line, format!("the end of the file after {:?}; expected \";\"", current.name())));
    }
    match heads.pop() {
        Some(head) => Err((head.line, format!("{:?} without an end; expected \"}}\"", head.name()))),
        None => Ok(open.pop().unwrap_or_default()),
    }
}
