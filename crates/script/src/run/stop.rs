//! Why a run ends before the end of its script.

use crate::problem::Problem;
use crate::report::{Report, Verdict};
use crate::script::{Packet, Script};

/// Why a run ended.
pub(super) enum Stop {
    /// The script is wrong, or asks for something that is not modeled.
    Problem(Problem),
    /// Something happened otherwise than the script says.
    Differs(Box<Difference>),
}

pub(super) struct Difference {
    line: u32,
    sentence: String,
    expected: Option<String>,
    came: Option<String>,
    history: Vec<String>,
}

impl From<Problem> for Stop {
    fn from(problem: Problem) -> Self {
        Self::Problem(problem)
    }
}

impl Stop {
    pub fn differs(line: u32, sentence: String) -> Self {
        Self::Differs(Box::new(Difference { line, sentence, expected: None, came: None, history: Vec::new() }))
    }

    fn change(mut self, change: impl FnOnce(&mut Difference)) -> Self {
        if let Self::Differs(difference) = &mut self {
            change(difference);
        }
        self
    }

    pub fn expecting(self, packet: &Packet) -> Self {
        let shown = packet.to_string();
        self.change(|difference| difference.expected = Some(shown))
    }

    pub fn coming(self, packet: &Packet) -> Self {
        let shown = packet.to_string();
        self.change(|difference| difference.came = Some(shown))
    }

    /// The packets that had arrived when no more did.
    pub fn after(self, packet: &Packet) -> Self {
        let sentence = format!("after {} bytes of it", packet.payload_bytes);
        self.coming(packet).change(|difference| difference.sentence = format!("{}, {sentence}", difference.sentence))
    }

    /// The segments before it.
    pub fn with_history(self, history: &[String]) -> Self {
        let history = history.to_vec();
        self.change(|difference| difference.history = history)
    }

    pub fn report(self, script: &Script) -> Report {
        let difference = match self {
            Self::Problem(problem) => return Report::of_problem(&problem),
            Self::Differs(difference) => *difference,
        };
        let mut details = vec![format!("line {}: {}", difference.line, script.line(difference.line))];
        details.extend(difference.expected.map(|expected| format!("expected  {expected}")));
        details.extend(difference.came.map(|came| format!("came      {came}")));
        if !difference.history.is_empty() {
            details.push("segments, the latest last:".to_owned());
            details.extend(difference.history.iter().map(|line| format!("  {line}")));
        }
        Report {
            verdict: Verdict::Differs,
            reason: format!("line {}: {}", difference.line, difference.sentence),
            line: difference.line,
            details,
            ..Report::default()
        }
    }
}
