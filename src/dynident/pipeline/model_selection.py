"""Model selection: the time delay, the source of velocities and the friction terms, as the training data supports."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from dynident.dynamics.terms import Term, along_terms, resolve_terms
from dynident.dynamics.terms.friction import FrictionTerm
from dynident.estimate.candidates import parse_friction
from dynident.estimate.delay import choose_delay, choose_velocity_source
from dynident.estimate.priors import PriorLeastSquares
from dynident.identifiability.base import BaseParameters, base_parameters
from dynident.pipeline.friction import FrictionChoice, select_friction
from dynident.pipeline.options import IdentifyOptions
from dynident.pipeline.preprocessing import TrainingData
from dynident.pipeline.springs import STIFFNESS


@dataclass(frozen=True, eq=False)
class ModelSelection:
    """What the training data decided about the model.

    Attributes:
        data: The logs, filtered with the delay and the source of velocities that were chosen.
        base: Base parameters of all terms.
        friction: The friction terms and the evidence for them; None where there is nothing to choose.
        automatic: Whether the friction of predictions is left to the data; else parameters predict.
        given: Terms of the options that follow a motion, which are in every model.
        notes: What was decided, in words.
    """

    data: TrainingData
    base: BaseParameters
    friction: FrictionChoice | None
    automatic: bool
    given: tuple[Term, ...]
    notes: tuple[str, ...]

    def with_springs(self, labels: Sequence[str]) -> ModelSelection:
        """The same with linear springs on elements that nobody declared."""
        term = FrictionTerm(STIFFNESS, only=tuple(labels))
        return replace(self, base=base_parameters(self.data.robot, (*self.base.terms, term)))


def select_model(data: TrainingData, options: IdentifyOptions) -> ModelSelection:
    """Let the training data decide what the options leave open."""
    notes = []
    if options.delay is None:
        data.progress("choosing the delay", 0, 1)
        delay = choose_delay(data.train, data.basic)
        notes.append(delay.reason)
        data = data.refilter(delay=delay.delay)
    if options.velocity_source is None:
        data.progress("choosing the velocity source", 0, 1)
        source = choose_velocity_source(data.train, data.basic, data.train[0].options.delay)
        notes.append(source.reason)
        data = data.refilter(velocity_source=source.velocity_source)
    given = along_terms(resolve_terms(options.terms)) if options.terms is not None else ()
    wanted = _wanted_friction(options, given)
    if isinstance(wanted, Sequence) and not isinstance(wanted, str) and not wanted:
        return ModelSelection(data, data.basic, None, False, given, tuple(notes))
    choice = select_friction(wanted, data)
    notes.append(choice.reason)
    # Terms that were given are in the model in any case, whatever friction is chosen beside them.
    chosen = {term.key for term in choice.terms}
    more = (*(term for term in given if term.key not in chosen), *choice.terms)
    base = base_parameters(data.robot, (*data.basic.terms, *more)) if more else data.basic
    return ModelSelection(data, base, choice, parse_friction(wanted) == "auto", given, tuple(notes))


def _wanted_friction(options: IdentifyOptions, given: Sequence[Term]) -> str | Sequence[str | Term]:
    """The friction beside the basic terms that was asked for; empty for none.

    Args:
        options: Of the identification.
        given: Terms of the options that are no functions of the state.
    """
    if options.friction is not None:
        return options.friction
    plain = options.essential is not None or isinstance(options.estimator, PriorLeastSquares)
    return given if options.terms is not None or plain else "auto"
