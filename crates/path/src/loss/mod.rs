//! Losses after the transmission: each packet with a probability, single data packets by number, and by a
//! model of the channel.

mod gilbert_elliott;
mod listed;

use listed::Listed;
use serde::{Deserialize, Serialize};

use crate::{LinkSpec, Part, SpecError};

/// The table of models: one line for each, with its file, its type and how a scenario describes it.
macro_rules! models {
    ($($(#[$doc:meta])* $model:ident($spec:ident) in $file:ident,)*) => {
        $(use $file::$model; pub use $file::$spec;)*

        /// A model of losses as a scenario describes it.
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
        #[serde(tag = "kind", rename_all = "snake_case")]
        pub enum LossModel {
            $($(#[$doc])* $model($spec),)*
        }

        /// Losses that depend on more than chance alone.
        #[derive(Clone, Debug)]
        enum Model {
            Listed(Listed),
            $($model($model),)*
        }

        impl LossModel {
            pub(crate) fn parts() -> Vec<Part> {
                vec![$($spec::describe(stringify!($model)),)*]
            }
        }

        impl Model {
            fn new(spec: &LossModel, key: u64) -> Result<Model, SpecError> {
                match spec {
                    $(LossModel::$model(spec) => {
                        spec.check_bounds()?;
                        $model::new(spec, key).map(Model::$model)
                    })*
                }
            }

            fn is_lost(&mut self, carries_data: bool) -> bool {
                match self {
                    Model::Listed(listed) => listed.is_lost(carries_data),
                    $(Model::$model(model) => model.is_lost(carries_data),)*
                }
            }
        }
    };
}

models! {
    /// Losses in bursts.
    GilbertElliott(GilbertElliottSpec) in gilbert_elliott,
}

/// The losses of a link.
#[derive(Clone, Debug, Default)]
pub(crate) struct Loss {
    /// Probability of each packet, independently of the others (Bernoulli).
    probability: f64,
    /// Another source of losses; nearly always none.
    models: Vec<Model>,
}

impl Loss {
    /// The losses that `spec` asks for. `key` keys the draws of a model.
    pub(crate) fn new(spec: &LinkSpec, key: impl FnOnce() -> u64) -> Result<Loss, SpecError> {
        if !(0.0..1.0).contains(&spec.loss) {
            return Err(SpecError::new("loss", spec.loss, "give a probability below 1"));
        }
        let mut models = Vec::new();
        if !spec.lose.is_empty() {
            models.push(Model::Listed(Listed::new(&spec.lose)?));
        }
        if let Some(model) = &spec.loss_model {
            models.push(Model::new(model, key())?);
        }
        Ok(Loss { probability: spec.loss, models })
    }

    /// True if there are any.
    pub(crate) fn are_possible(&self) -> bool {
        self.probability > 0.0 || !self.models.is_empty()
    }

    /// Whether the packet that is transmitted next is lost. Losses of a model use no random draws, so that
    /// those of the packets after it stay the same.
    // Inlined by force: nearly every link that loses packets does so with one probability alone.
    #[inline(always)]
    pub(crate) fn is_lost(&mut self, carries_data: bool, random: impl FnOnce() -> f64) -> bool {
        let by_model = self.models.iter_mut().fold(false, |lost, model| model.is_lost(carries_data) | lost);
        let at_random = self.probability > 0.0 && random() < self.probability;
        by_model | at_random
    }
}
