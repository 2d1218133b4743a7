//! What is lost on the line after its transmission: each packet with a probability, and single data packets by number.

mod listed;

use listed::Listed;

use crate::LinkSpec;

/// The losses of a link.
#[derive(Clone, Debug)]
pub(crate) struct Loss {
    /// Probability of each packet, independently of the others (Bernoulli).
    probability: f64,
    /// Data packets that are lost by their number; none, as nearly always, if no packet is.
    listed: Option<Box<Listed>>,
}

impl Loss {
    /// The losses that `spec` asks for.
    ///
    /// # Errors
    /// A probability that is none, or numbers that are not ascending from 1: one sentence.
    pub(crate) fn new(spec: &LinkSpec) -> Result<Loss, String> {
        if !(0.0..1.0).contains(&spec.loss) {
            return Err(format!("a loss of {} is not a probability below 1", spec.loss));
        }
        let listed = if spec.lose.is_empty() { None } else { Some(Box::new(Listed::new(&spec.lose)?)) };
        Ok(Loss { probability: spec.loss, listed })
    }

    /// Whether the packet that is transmitted next is lost. What is listed takes nothing from the random draws, so that
    /// those of the packets after it stay the same.
    #[inline]
    pub(crate) fn strikes(&mut self, carries_data: bool, random: impl FnOnce() -> f64) -> bool {
        let by_number = carries_data && self.listed.as_mut().is_some_and(|listed| listed.strikes());
        let at_random = self.probability > 0.0 && random() < self.probability;
        by_number | at_random
    }
}
