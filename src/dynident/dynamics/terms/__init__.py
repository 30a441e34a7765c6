"""Terms: every effect contributes named columns to one linear model, tau = W chi.

Names are looked up on first use, so that the help of the command line reads the laws of friction without NumPy.
"""

from typing import TYPE_CHECKING

from dynident.lazy import lazy_names

if TYPE_CHECKING:
    from dynident.dynamics.terms.basic import (
        Coulomb as Coulomb,
        ElementTerm as ElementTerm,
        Offset as Offset,
        Rigid as Rigid,
        RotorInertia as RotorInertia,
        Viscous as Viscous,
    )
    from dynident.dynamics.terms.keys import (
        ALONG_TERM_NAMES as ALONG_TERM_NAMES,
        DEFAULT_TERMS as DEFAULT_TERMS,
        TERM_NAMES as TERM_NAMES,
        TermsLike as TermsLike,
        along_terms as along_terms,
        resolve_terms as resolve_terms,
        split_terms as split_terms,
        state_terms as state_terms,
        stored_terms as stored_terms,
        with_springs as with_springs,
    )
    from dynident.dynamics.terms.term import Column as Column, Entry as Entry, Term as Term, all_columns as all_columns
else:
    __getattr__, __dir__, __all__ = lazy_names(__name__)
