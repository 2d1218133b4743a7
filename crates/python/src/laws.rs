//! The laws that intervals and tests need, from `statrs`. No degrees of freedom, or a NaN among the arguments, give NaN.

use pyo3::{buffer::PyBuffer, prelude::*, types::PyBytes};
use statrs::distribution::{ChiSquared, ContinuousCDF, Normal, StudentsT};

/// Share of the standard normal law at or below each of the float64 values of a contiguous buffer; float64 as bytes.
#[pyfunction]
pub(crate) fn normal_cdf<'py>(py: Python<'py>, values: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyBytes>> {
    let normal = Normal::standard();
    let values = PyBuffer::<f64>::get(values)?.to_vec(py)?;
    let shares: Vec<u8> = values.into_iter().flat_map(|value| normal.cdf(value).to_ne_bytes()).collect();
    Ok(PyBytes::new(py, &shares))
}

/// None without degrees of freedom. Beyond ten million they are those of the normal law to 1e-6; statrs 0.18 errs there.
fn student(freedom: f64) -> Option<StudentsT> {
    StudentsT::new(0.0, 1.0, if freedom > 1e7 { f64::INFINITY } else { freedom }).ok()
}

/// Share of Student's t with `freedom` degrees of freedom at or below `value`.
#[pyfunction]
pub(crate) fn student_cdf(freedom: f64, value: f64) -> f64 {
    student(freedom).filter(|_| !value.is_nan()).map_or(f64::NAN, |law| law.cdf(value))
}

/// The quantile of Student's t with `freedom` degrees of freedom, infinity included. By bisection: `inverse_cdf` of statrs 0.18
/// does not end for some arguments.
#[pyfunction]
pub(crate) fn student_quantile(freedom: f64, share: f64) -> f64 {
    let Some(law) = student(freedom).filter(|_| (0.0..=1.0).contains(&share)) else { return f64::NAN };
    // In the lower tail shares are exact.
    let tail = share.min(1.0 - share);
    if tail == 0.0 {
        return if share < 0.5 { f64::NEG_INFINITY } else { f64::INFINITY };
    }
    let (mut near, mut far) = (0.0, 1.0);
    while law.cdf(-far) > tail && far < f64::MAX {
        (near, far) = (far, 2.0 * far);
    }
    loop {
        let middle = f64::midpoint(near, far);
        if middle <= near || middle >= far {
            return if share < 0.5 { -middle } else { middle };
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
pub(crate) fn chi_squared_tail(freedom: f64, value: f64) -> f64 {
    ChiSquared::new(freedom).ok().filter(|_| !value.is_nan()).map_or(f64::NAN, |law| law.sf(value))
}
