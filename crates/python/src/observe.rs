//! Captures, read in batches.

use std::{fs::File, path::PathBuf};

use firstflight_observe::{ReadError, Reader};
use pyo3::{
    exceptions::{PyOSError, PyValueError},
    prelude::*,
    types::PyDict,
};

use crate::columns;

/// A capture file being read.
#[pyclass]
pub(crate) struct CaptureReader(Reader<File>);

#[pymethods]
impl CaptureReader {
    #[new]
    fn new(path: PathBuf) -> PyResult<Self> {
        Reader::open(&path).map(Self).map_err(raised)
    }

    /// At least so many rows, or those that are left; None after them.
    fn read<'py>(&mut self, py: Python<'py>, rows: usize) -> PyResult<Option<Bound<'py, PyDict>>> {
        let Some(batch) = py.detach(|| self.0.read(rows)).map_err(raised)? else { return Ok(None) };
        let tables = PyDict::new(py);
        for table in batch.into_tables() {
            tables.set_item(table.0, columns(py, table)?)?;
        }
        Ok(Some(tables))
    }

    /// What could not be read so far: (what, how often, the first bytes of the file).
    fn problems(&self) -> Vec<(String, u64, Vec<u64>)> {
        self.0.problems().into_iter().map(|found| (found.trouble.to_string(), found.count, found.first)).collect()
    }

    /// The packets so far that were no TCP segments, by protocol, the most frequent first.
    fn others(&self) -> Vec<(String, u64)> {
        self.0.others()
    }

    /// Packets read so far, and TCP segments among them.
    fn counts(&self) -> (u64, u64) {
        self.0.counts()
    }
}

fn raised(error: ReadError) -> PyErr {
    match &error {
        ReadError::Io(..) => PyOSError::new_err(error.to_string()),
        ReadError::NoCapture(_) => PyValueError::new_err(error.to_string()),
    }
}
