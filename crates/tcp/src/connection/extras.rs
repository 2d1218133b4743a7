//! State that plain TCP does not need, behind one pointer. A connection without it is small and skips it with one test.

use super::Reset;
use super::socket_options::RecordEnds;
use crate::event::Listener;
use crate::profile::{Profile, WindowValidation};
use crate::receiver::Memory;
use crate::receiver::ack::Arrivals;
use crate::receiver::window::{Blocks, GrowingWindow};
use crate::segment::PathOption;
use crate::sender::pacing::Pacer;
use crate::sender::startup::StartupState;
use crate::sender::window_validation::Validation;

/// All of it, or nothing.
#[derive(Clone, Debug, Default)]
pub(crate) struct Extras(Option<Box<Extra>>);

#[derive(Clone, Debug)]
pub(crate) struct Extra {
    pub departure: Option<Box<Departure>>,
    /// The next segment's message to the routers on the path.
    pub path_option: Option<PathOption>,
    pub memory: Memory,
    pub validation: Option<Validation>,
    /// Ends of records, in order: places that no segment spans.
    pub record_ends: RecordEnds,
    /// The reset that is due.
    pub reset: Reset,
    pub listener: Option<Box<Listener>>,
}

/// Decides when data is sent, in addition to windows. Present only while there is something to do.
#[derive(Clone, Debug, Default)]
pub(crate) struct Departure {
    pub startup: Option<StartupState>,
    pub pacer: Option<Pacer>,
}

impl Extra {
    fn new(profile: &Profile, initial_sequence: u32, spare: Blocks) -> Self {
        Self {
            departure: None,
            path_option: None,
            memory: Memory::new(profile, initial_sequence, spare),
            validation: Validation::new(profile.window_validation),
            record_ends: RecordEnds::default(),
            reset: Reset::default(),
            listener: None,
        }
    }
}

impl Extras {
    /// State that a connection of this profile needs from the beginning. Reuses the memory of a finished one, if there
    /// is any.
    pub fn for_another(self, profile: &Profile, initial_sequence: u32) -> Self {
        let needed = Memory::is_needed(profile) || profile.window_validation != WindowValidation::Off;
        if !needed {
            return Self(None);
        }
        let Some(mut old) = self.0 else {
            return Self(Some(Box::new(Extra::new(profile, initial_sequence, Blocks::default()))));
        };
        let spare = old.memory.take_spare();
        *old = Extra::new(profile, initial_sequence, spare);
        Self(Some(old))
    }

    /// To be added to.
    #[cold]
    pub fn get_or_new(&mut self, profile: &Profile, initial_sequence: u32) -> &mut Extra {
        self.0.get_or_insert_with(|| Box::new(Extra::new(profile, initial_sequence, Blocks::default())))
    }

    /// Whether there is a start-up scheme or a pacer.
    #[inline]
    pub fn may_hold_back(&self) -> bool {
        self.0.as_deref().is_some_and(|extra| extra.departure.is_some())
    }

    #[inline]
    pub fn startup(&self) -> Option<&StartupState> {
        self.0.as_deref()?.departure.as_deref()?.startup.as_ref()
    }

    #[inline]
    pub fn startup_mut(&mut self) -> Option<&mut StartupState> {
        self.0.as_deref_mut()?.departure.as_deref_mut()?.startup.as_mut()
    }

    #[inline]
    pub fn pacer(&self) -> Option<&Pacer> {
        self.0.as_deref()?.departure.as_deref()?.pacer.as_ref()
    }

    #[inline]
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

    /// Neither is needed any more.
    pub fn end_departures(&mut self) {
        if let Some(extra) = self.0.as_deref_mut() {
            extra.departure = None;
        }
    }

    #[inline]
    pub fn validation(&self) -> Option<&Validation> {
        self.0.as_deref()?.validation.as_ref()
    }

    #[inline]
    pub fn validation_mut(&mut self) -> Option<&mut Validation> {
        self.0.as_deref_mut()?.validation.as_mut()
    }

    #[inline]
    pub fn memory(&self) -> Option<&Memory> {
        Some(&self.0.as_deref()?.memory)
    }

    #[inline]
    pub fn memory_mut(&mut self) -> Option<&mut Memory> {
        Some(&mut self.0.as_deref_mut()?.memory)
    }

    /// With the adaptive acknowledgment policy.
    #[inline]
    pub fn arrivals(&self) -> Option<&Arrivals> {
        self.memory()?.arrivals.as_ref()
    }

    #[inline]
    pub fn arrivals_mut(&mut self) -> Option<&mut Arrivals> {
        self.memory_mut()?.arrivals.as_mut()
    }

    /// A window that grows.
    #[inline]
    pub fn growing_window(&self) -> Option<&GrowingWindow> {
        self.memory()?.window.as_ref()
    }

    /// Ends of records, if there are any.
    #[inline]
    pub fn record_ends(&self) -> Option<&RecordEnds> {
        Some(&self.0.as_deref()?.record_ends).filter(|ends| !ends.is_empty())
    }

    /// If somebody listens.
    pub fn listener_mut(&mut self) -> Option<&mut Listener> {
        self.0.as_deref_mut()?.listener.as_deref_mut()
    }

    pub fn take_path_option(&mut self) -> Option<PathOption> {
        self.0.as_deref_mut()?.path_option.take()
    }

    /// The reset that is due.
    pub fn reset(&self) -> Reset {
        self.0.as_deref().map_or(Reset::default(), |extra| extra.reset)
    }
}
