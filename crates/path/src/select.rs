//! A choice without a jump.

/// `yes` if the condition holds, else `no`. For conditions that cannot be predicted: a wrongly predicted jump costs more
/// than both values.
#[inline(always)]
pub fn select<T>(condition: bool, yes: T, no: T) -> T {
    #[cfg(has_select_unpredictable)]
    #[allow(clippy::incompatible_msrv)]
    return std::hint::select_unpredictable(condition, yes, no);
    #[cfg(not(has_select_unpredictable))]
    if condition { yes } else { no }
}
