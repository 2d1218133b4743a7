//! Splits a shell block into commands. Nothing is executed.

/// A command: its words, without redirections to other places than a file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Command {
    pub line: u32,
    pub words: Vec<String>,
    /// The file that standard output goes to.
    pub output: Option<String>,
}

/// The commands of a block that begins in line `first` of the script.
pub(super) fn commands(text: &str, first: u32) -> Vec<Command> {
    let mut splitter = Splitter { found: Vec::new(), words: Vec::new(), word: None, command_line: first };
    let mut line = first;
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '\n' => {
                splitter.end_command();
                line += 1;
            }
            '\\' => match characters.next() {
                Some('\n') => {
                    splitter.end_word();
                    line += 1;
                }
                Some(other) => splitter.push(other, line),
                None => {}
            },
            '\'' | '"' => {
                splitter.begin_word(line);
                for inside in characters.by_ref() {
                    if inside == character {
                        break;
                    }
                    line += u32::from(inside == '\n');
                    splitter.push(inside, line);
                }
            }
            '$' if characters.peek() == Some(&'(') => {
                // A substitution stays one word as it is written; the code that needs it refuses or computes it.
                splitter.push('$', line);
                let mut depth = 0u32;
                for inside in characters.by_ref() {
                    splitter.push(inside, line);
                    line += u32::from(inside == '\n');
                    depth = match inside {
                        '(' => depth + 1,
                        ')' => depth.saturating_sub(1),
                        _ => depth,
                    };
                    if depth == 0 {
                        break;
                    }
                }
            }
            '#' if splitter.word.is_none() => while characters.next_if(|next| *next != '\n').is_some() {},
            ';' | '|' => splitter.end_command(),
            '&' if characters.peek() == Some(&'&') => {
                characters.next();
                splitter.end_command();
            }
            blank if blank.is_whitespace() => splitter.end_word(),
            other => splitter.push(other, line),
        }
    }
    splitter.end_command();
    splitter.found
}

struct Splitter {
    found: Vec<Command>,
    words: Vec<String>,
    word: Option<String>,
    /// Line of the command's first word.
    command_line: u32,
}

impl Splitter {
    fn begin_word(&mut self, line: u32) {
        if self.words.is_empty() && self.word.is_none() {
            self.command_line = line;
        }
        self.word.get_or_insert_with(String::new);
    }

    fn push(&mut self, character: char, line: u32) {
        self.begin_word(line);
        self.word.get_or_insert_with(String::new).push(character);
    }

    fn end_word(&mut self) {
        self.words.extend(self.word.take());
    }

    fn end_command(&mut self) {
        self.end_word();
        let mut words = Vec::new();
        let mut output = None;
        let mut given = std::mem::take(&mut self.words).into_iter();
        while let Some(word) = given.next() {
            // `> file`, `>file`, `2>/dev/null`, `2>&1`
            let Some((stream, target)) = word.split_once('>').filter(|(stream, _)| matches!(*stream, "" | "1" | "2"))
            else {
                words.push(word);
                continue;
            };
            let target = target.trim_start_matches('>');
            let target = if target.is_empty() { given.next().unwrap_or_default() } else { target.to_owned() };
            if stream != "2" {
                output = Some(target);
            }
        }
        if !words.is_empty() {
            self.found.push(Command { line: self.command_line, words, output });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> Vec<String> {
        commands(text, 1)
            .into_iter()
            .map(|command| {
                let output = command.output.map_or(String::new(), |output| format!(" > {output}"));
                format!("{} {}{output}", command.line, command.words.join("|"))
            })
            .collect()
    }

    #[test]
    fn commands_end_at_line_ends_and_semicolons_but_not_in_quotes_or_after_a_backslash() {
        let text = "../common/defaults.sh\n./set_sysctls.py a=1 \\\n\t b=2; tc qdisc 2>/dev/null\nsysctl -q x=\"1 2\" # why\n# all";
        assert_eq!(
            shown(text),
            ["1 ../common/defaults.sh", "2 ./set_sysctls.py|a=1|b=2", "3 tc|qdisc", "4 sysctl|-q|x=1 2"]
        );
    }

    #[test]
    fn output_to_a_file_is_told() {
        assert_eq!(shown("echo 3 > /proc/x && echo \"4\" >/sys/y 2>&1"), ["1 echo|3 > /proc/x", "1 echo|4 > /sys/y"]);
    }
}
