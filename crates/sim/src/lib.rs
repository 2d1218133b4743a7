//! firstflight
