//! The functions that a page calls. Numbers alone cross the boundary; text and tables wait in memory on this side.

#![expect(unsafe_code, reason = "a symbol with a fixed name; the functions themselves are safe")]

use std::cell::RefCell;

thread_local! {
    static INPUT: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
    static OUTPUT: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// Memory for an input of this number of bytes, which the caller fills before the next call.
#[unsafe(no_mangle)]
pub extern "C" fn input(bytes: usize) -> *mut u8 {
    INPUT.with_borrow_mut(|input| {
        input.clear();
        input.resize(bytes, 0);
        input.as_mut_ptr()
    })
}

/// Simulates the plan in the input; `capture` keeps every segment if it is not 0. Returns whether the output has the
/// tables (1) or the sentence that states the problem (0).
#[unsafe(no_mangle)]
pub extern "C" fn simulate(seed: u64, capture: u32) -> u32 {
    let answer = INPUT.with_borrow(|input| {
        let plan = std::str::from_utf8(input).map_err(|error| format!("this is not a plan: {error}"))?;
        crate::run(plan, seed, capture != 0).map_err(|error| error.to_string())
    });
    put(answer)
}

/// Reads the capture in the input, which is gone afterwards; returns as [`simulate`] does.
#[unsafe(no_mangle)]
pub extern "C" fn observe() -> u32 {
    put(crate::read(&INPUT.take()).map_err(|error| error.to_string()))
}

/// Likewise, for the segments of one connection of the capture.
#[unsafe(no_mangle)]
pub extern "C" fn segments(connection: u32) -> u32 {
    put(crate::segments_of(&INPUT.take(), connection).map_err(|error| error.to_string()))
}

fn put(answer: Result<Vec<u8>, String>) -> u32 {
    let is_done = u32::from(answer.is_ok());
    OUTPUT.set(answer.unwrap_or_else(String::into_bytes));
    is_done
}

/// Address of the last call's output, valid until the next call.
#[unsafe(no_mangle)]
pub extern "C" fn output() -> *const u8 {
    OUTPUT.with_borrow(|output| output.as_ptr())
}

/// Bytes of the output.
#[unsafe(no_mangle)]
pub extern "C" fn output_length() -> usize {
    OUTPUT.with_borrow(Vec::len)
}
