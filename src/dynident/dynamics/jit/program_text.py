"""Recorded programs as source text: what is used once is written in place while it is short, all else has a name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from dynident.dynamics.jit.program import LEAVES, UNARY, Op, Program

Text = tuple[str, int]  # an expression and its binding strength
SUM, PRODUCT, ATOM = 1, 2, 3  # binding strengths; an atom needs no brackets
OPERATORS = {Op.ADD: ("+", SUM), Op.SUB: ("-", SUM), Op.MUL: ("*", PRODUCT), Op.DIV: ("/", PRODUCT)}


@dataclass(frozen=True)
class Syntax:
    """How a language writes a straight-line program.

    Attributes:
        name: Name of an intermediate result from its number, counted from 0.
        assign: Statement that gives a name to an expression.
        constant: A number as it is written.
        call: A function of one number, such as sin, of an expression.
        binary: An operation on two expressions.
        negated_strength: What an expression must bind like to stand behind a minus sign.
        longest: Characters of an intermediate result that is written in place.
        names_outputs: Whether outputs have names, so that nothing is computed once they are written.
    """

    name: Callable[[int], str]
    assign: Callable[[str, str], str]
    constant: Callable[[float], str]
    call: Callable[[Op, str], str]
    binary: Callable[[Op, Text, Text], str]
    negated_strength: int
    longest: int
    names_outputs: bool = False


def in_brackets(text: Text, strength: int) -> str:
    """An expression where one of some binding strength is needed."""
    return text[0] if text[1] >= strength else f"({text[0]})"


def write_program(
    program: Program, syntax: Syntax, input_name: Callable[[str], str] = str
) -> tuple[list[str], list[str]]:
    """A program as statements, and the text of every output.

    Args:
        program: The program.
        syntax: Of the language.
        input_name: What an input is called there.
    """
    uses = [0] * len(program.instructions)
    for op, a, b in program.instructions:
        if op not in LEAVES:
            uses[a] += 1
            if op not in UNARY:
                uses[b] += 1
    for node in program.outputs:
        uses[node] += 2 if syntax.names_outputs else 1
    lines: list[str] = []
    texts: list[Text] = []
    for i, (op, a, b) in enumerate(program.instructions):
        text, strength = _expression(program, syntax, input_name, texts, op, a, b)
        if op not in LEAVES and (uses[i] > 1 or len(text) > syntax.longest):
            name = syntax.name(len(lines))
            lines.append(syntax.assign(name, text))
            text, strength = name, ATOM
        texts.append((text, strength))
    return lines, [texts[node][0] for node in program.outputs]


def _expression(
    program: Program, syntax: Syntax, input_name: Callable[[str], str], texts: list[Text], op: Op, a: int, b: int
) -> Text:
    if op == Op.INPUT:
        return input_name(program.inputs[a]), ATOM
    if op == Op.CONST:
        value = program.constants[a]
        return syntax.constant(value), ATOM if value >= 0 else SUM
    if op == Op.NEG:
        return f"-{in_brackets(texts[a], syntax.negated_strength)}", SUM
    if op in UNARY:
        return syntax.call(op, texts[a][0]), ATOM
    return syntax.binary(op, texts[a], texts[b]), OPERATORS[op][1]
