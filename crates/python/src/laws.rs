//! The laws that intervals and tests need, from `statrs`. No degrees of freedom, or a NaN among the arguments, give NaN.

use pyo3::{buffer::PyBuffer, prelude::*, types::PyBytes};
use statrs::distribution::{ChiSquared, ContinuousCDF, Normal, StudentsT};

use crate::invalid;

/// Share of the standard normal law at or below each of the float64 values of a contiguous buffer; float64 as bytes.
#[pyfunction]
pub(crate) fn normal_cdf<'py>(py: Python<'py>, values: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyBytes>> {
    let normal = Normal::standard();
    let values = PyBuffer::<f64>::get(values)?.to_vec(py)?;
    let shares: Vec<u8> = values.into_iter().flat_map(|value| normal.cdf(value).to_ne_bytes()).collect();
    Ok(PyBytes::new(py, &shares))
}

/// Share of Student's t with `freedom` degrees of freedom at or below `value`.
#[pyfunction]
pub(crate) fn student_cdf(freedom: f64, value: f64) -> PyResult<f64> {
    if freedom.is_nan() || freedom <= 0.0 || value.is_nan() {
        return Ok(f64::NAN);
    }
    StudentsT::new(0.0, 1.0, freedom).map(|law| law.cdf(value)).map_err(invalid)
}

/// The quantile of Student's t with `freedom` degrees of freedom, infinity included. By bisection: `inverse_cdf` of statrs 0.18
/// does not end for some arguments.
#[pyfunction]
pub(crate) fn student_quantile(freedom: f64, share: f64) -> PyResult<f64> {
    if freedom.is_nan() || freedom <= 0.0 || !(0.0..=1.0).contains(&share) {
        return Ok(f64::NAN);
    }
    let law = StudentsT::new(0.0, 1.0, freedom).map_err(invalid)?;
    // In the lower tail shares are exact.
    let tail = share.min(1.0 - share);
    if tail == 0.0 {
        return Ok(if share < 0.5 { f64::NEG_INFINITY } else { f64::INFINITY });
    }
    let (mut near, mut far) = (0.0, 1.0);
    while law.cdf(-far) > tail && far < f64::MAX {
        (near, far) = (far, 2.0 * far);
    }
    loop {
        let middle = f64::midpoint(near, far);
        if middle <= near || middle >= far {
            return Ok(if share < 0.5 { -middle } else { middle });
        }
        if law.cdf(-middle) > tail {
            near = middle;
        } else {
            far = middle;
        }
    }
}

/// Share of the chi-squared law with `freedom` degrees of freedom above `value`.
#[pyfunction]
pub(crate) fn chi_squared_tail(freedom: f64, value: f64) -> PyResult<f64> {
    if freedom.is_nan() || freedom <= 0.0 || value.is_nan() {
        return Ok(f64::NAN);
    }
    ChiSquared::new(freedom).map(|law| law.sf(value)).map_err(invalid)
}
