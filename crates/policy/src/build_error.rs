//! The error of registries whose policies may have parameters.

use crate::{ParameterError, SpecError, UnknownName};

/// Why a [`Spec`](crate::Spec), or a text that should be one, yields no policy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BuildError {
    /// The text is not written as a name, with or without parameters.
    #[error(transparent)]
    Form(#[from] SpecError),
    /// No policy has this name.
    #[error(transparent)]
    Unknown(#[from] UnknownName),
    /// Its parameters are wrong.
    #[error(transparent)]
    Parameters(#[from] ParameterError),
}
