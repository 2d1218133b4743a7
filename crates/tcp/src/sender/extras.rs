//! State that a sender of plain TCP does not need, behind one pointer. A sender without it is small and skips it with one
//! test.

use crate::event::Listener;
use crate::profile::{Profile, WindowValidation};
use crate::sender::pacing::Pacer;
use crate::sender::startup::StartupState;
use crate::sender::window_validation::Validation;
use crate::sequence::SeqNum;
use std::num::NonZeroU16;

/// Absent in a sender that needs none of it.
#[derive(Clone, Debug, Default)]
pub(crate) struct SenderExtras(Option<Box<Extra>>);

#[derive(Clone, Debug, Default)]
pub(crate) struct Extra {
    pub departure: Option<Box<Departure>>,
    pub validation: Option<Validation>,
    /// Ends of records, in order: places that no segment spans.
    pub record_ends: RecordEnds,
    pub listener: Option<Box<Listener>>,
    pub inherited: Inherited,
}

/// Decides when data is sent, in addition to windows. Present only while there is something to do.
#[derive(Clone, Debug, Default)]
pub(crate) struct Departure {
    pub startup: Option<StartupState>,
    pub pacer: Option<Pacer>,
}

/// What earlier connections have left, in segments; none: as the profile says.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Inherited {
    pub window: Option<NonZeroU16>,
    pub ssthresh: Option<NonZeroU16>,
}

/// Ends of records, in order: places that no segment spans.
#[derive(Clone, Debug, Default)]
pub(crate) struct RecordEnds(Vec<SeqNum>);

impl RecordEnds {
    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// A record ends here.
    pub fn push(&mut self, end: SeqNum) {
        if self.0.last() != Some(&end) {
            self.0.push(end);
        }
    }

    #[cold]
    pub fn after(&self, position: SeqNum) -> Option<SeqNum> {
        self.0.get(self.0.partition_point(|end| *end <= position)).copied()
    }
}

impl Extra {
    fn new(profile: &Profile) -> Self {
        Self { validation: Validation::new(profile.window_validation), ..Self::default() }
    }
}

impl SenderExtras {
    /// State that a sender of this profile needs from the beginning, in the memory of a finished one if there is any.
    pub fn for_another(self, profile: &Profile) -> Self {
        if profile.window_validation == WindowValidation::Off {
            return Self(None);
        }
        let Some(mut old) = self.0 else { return Self(Some(Box::new(Extra::new(profile)))) };
        *old = Extra::new(profile);
        Self(Some(old))
    }

    /// The state, made if there is none yet.
    #[cold]
    pub fn get_or_new(&mut self, profile: &Profile) -> &mut Extra {
        self.0.get_or_insert_with(|| Box::new(Extra::new(profile)))
    }

    /// Whether there is a start-up scheme or a pacer.
    pub fn may_hold_back(&self) -> bool {
        self.0.as_deref().is_some_and(|extra| extra.departure.is_some())
    }

    pub fn startup(&self) -> Option<&StartupState> {
        self.0.as_deref()?.departure.as_deref()?.startup.as_ref()
    }

    pub fn startup_mut(&mut self) -> Option<&mut StartupState> {
        self.0.as_deref_mut()?.departure.as_deref_mut()?.startup.as_mut()
    }

    pub fn pacer(&self) -> Option<&Pacer> {
        self.0.as_deref()?.departure.as_deref()?.pacer.as_ref()
    }

    pub fn pacer_mut(&mut self) -> Option<&mut Pacer> {
        self.0.as_deref_mut()?.departure.as_deref_mut()?.pacer.as_mut()
    }

    /// The start-up scheme has nothing more to do.
    pub fn end_startup(&mut self) {
        self.end_departure(|departure| departure.startup = None);
    }

    /// Nothing is paced any more.
    pub fn end_pacing(&mut self) {
        self.end_departure(|departure| departure.pacer = None);
    }

    fn end_departure(&mut self, end: impl FnOnce(&mut Departure)) {
        if let Some(extra) = self.0.as_deref_mut() {
            if let Some(departure) = extra.departure.as_deref_mut() {
                end(departure);
                if departure.startup.is_none() && departure.pacer.is_none() {
                    extra.departure = None;
                }
            }
        }
    }

    /// Ends start-up scheme and pacer.
    pub fn end_departures(&mut self) {
        if let Some(extra) = self.0.as_deref_mut() {
            extra.departure = None;
        }
    }

    pub fn validation(&self) -> Option<&Validation> {
        self.0.as_deref()?.validation.as_ref()
    }

    pub fn validation_mut(&mut self) -> Option<&mut Validation> {
        self.0.as_deref_mut()?.validation.as_mut()
    }

    /// Ends of records, if there are any.
    pub fn record_ends(&self) -> Option<&RecordEnds> {
        Some(&self.0.as_deref()?.record_ends).filter(|ends| !ends.is_empty())
    }

    /// The listener to the sender's events, if there is one.
    pub fn listener(&self) -> Option<&Listener> {
        self.0.as_deref()?.listener.as_deref()
    }

    pub fn listener_mut(&mut self) -> Option<&mut Listener> {
        self.0.as_deref_mut()?.listener.as_deref_mut()
    }

    pub fn inherited(&self) -> Inherited {
        self.0.as_deref().map_or(Inherited::default(), |extra| extra.inherited)
    }
}
