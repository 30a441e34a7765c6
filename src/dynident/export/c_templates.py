"""Texts of the compensation library; words between @ are filled in by `c_compensation`."""

from __future__ import annotations

HEADER = """\
/*
 * @mark@: gravity and friction compensation of robot @robot@.
 *
 * These functions and their arguments are the same for every robot, and stay so as long as the number of the API does.
 * q [rad or m], dq [rad/s or m/s], torque [N m or N] at the coordinates of @name@.h, in the order of its joints.
 * Functions return 0, or -1 for a position or velocity that is no finite number; all torque is zero then.
 *
 * Usage, in the loop of the controller:
 *     @name@_compensation state;
 *     @name@_compensation_init(&state);
 *     for each cycle of dt seconds:
 *         @name@_drag(&state, q, dq, dt, tau);
 */

#ifndef @NAME@_COMPENSATION_H
#define @NAME@_COMPENSATION_H

#include "@name@.h"

#ifdef __cplusplus
extern "C" {
#endif

#define @NAME@_COMPENSATION_API @api@

/* Friction torque of each joint in the cycle before. */
typedef struct {
    @real@ drag[@N@];
} @name@_compensation;

/* Share of the friction that drag compensates, at most 1. As exported: what friction is with two standard deviations
 * less than identified, at most nine tenths. */
extern @real@ @name@_drag_share[@N@];

/* Below this velocity a joint gets no friction torque [rad/s or m/s]. Set it above the noise of dq at rest. */
extern @real@ @name@_rest_velocity[@N@];

/* Time in which friction torque may rise to its limit [s]; it falls at once. Set it above the delay of dq. */
extern @real@ @name@_rise_time;

/* Largest friction torque, and largest torque altogether. */
extern @real@ @name@_drag_limit[@N@];
extern @real@ @name@_torque_limit[@N@];

/* Torque that holds the arm still at q: gravity, springs and offsets. */
int @name@_hold(const @real@ q[@N@], @real@ tau[@N@]);

/* The same, and a share of the friction in the direction of motion: the arm is easy to drag by hand. Zero at rest,
 * bounded, and always less than the friction takes. */
int @name@_drag(@name@_compensation *state, const @real@ q[@N@], const @real@ dq[@N@],
                @real@ dt, @real@ tau[@N@]);

/* No friction torque: at the start, and after every pause. */
void @name@_compensation_init(@name@_compensation *state);

int @name@_compensation_api(void);
int @name@_n_joints(void);
const char *@name@_joint_name(int joint);

#ifdef __cplusplus
}
#endif

#endif
"""

SOURCE = """\
/* @mark@; see @name@_compensation.h. */

#include "@name@_compensation.h"

#include <math.h>

@real@ @name@_drag_share[@N@] = {@share@};
@real@ @name@_rest_velocity[@N@] = {@rest_velocity@};
@real@ @name@_rise_time = @rise@;
@real@ @name@_drag_limit[@N@] = {@drag_limit@};
@real@ @name@_torque_limit[@N@] = {@torque_limit@};

static const @real@ zero[@N@] = {@zero@};

static @real@ within(@real@ x, @real@ limit)
{
    return x > limit ? limit : x < -limit ? -limit : x;
}

static int is_finite(const @real@ x[@N@])
{
    for (int j = 0; j < @N@; j++) {
        if (!(x[j] - x[j] == @zero@)) return 0;
    }
    return 1;
}

static void clear(@real@ x[@N@])
{
    for (int j = 0; j < @N@; j++) x[j] = @zero@;
}

/* Torque of the model at rest, without limits. */
static void at_rest(const @real@ q[@N@], @real@ tau[@N@])
{
    const @real@ *dq = zero;
@memory@@begin@    @name@_inverse_dynamics(@full@, tau);
}

/* Friction in steady sliding, beyond what the same function has at rest. */
static void sliding_friction(const @real@ q[@N@], const @real@ dq[@N@], @real@ f[@N@])
{
    @real@ offset[@N@];
@memory@@begin@    @name@_friction(@resting@, offset);
@wind@    @name@_friction(@moving@, f);
    for (int j = 0; j < @N@; j++) f[j] -= offset[j];
}

int @name@_hold(const @real@ q[@N@], @real@ tau[@N@])
{
    clear(tau);
    if (!is_finite(q)) return -1;
    at_rest(q, tau);
    for (int j = 0; j < @N@; j++) tau[j] = within(tau[j], @name@_torque_limit[j]);
    return 0;
}

int @name@_drag(@name@_compensation *state, const @real@ q[@N@], const @real@ dq[@N@],
                @real@ dt, @real@ tau[@N@])
{
    @real@ f[@N@], v[@N@], power = @zero@, taken = @zero@;
    clear(tau);
    if (!is_finite(q) || !is_finite(dq)) {
        clear(state->drag);
        return -1;
    }
    at_rest(q, tau);
    sliding_friction(q, dq, f);
@velocities@
    for (int j = 0; j < @N@; j++) {
        power += f[j] * v[j];
        if (f[j] * v[j] > @zero@) taken += f[j] * v[j];
    }
    /* Of coupled joints, some rows may gain what others lose: all together stay below what friction takes. */
    const @real@ common = power > @zero@ && taken > @zero@ ? power / taken : @zero@;
    for (int j = 0; j < @N@; j++) {
        const @real@ rest = @name@_rest_velocity[j], limit = @name@_drag_limit[j];
        const @real@ share = within(@name@_drag_share[j], @one@);
        const @real@ speed = fabs@f@(v[j]);
        @real@ ramp = rest > @zero@ ? within((speed - rest) / rest, @one@) : @one@;
        @real@ last = state->drag[j], wanted = @zero@, most;
        if (ramp > @zero@ && share > @zero@ && f[j] * v[j] > @zero@) {
            wanted = within(f[j] * share * ramp * common, limit);
        }
        if (last * wanted <= @zero@) last = @zero@;
        most = limit;
        if (@name@_rise_time > @zero@) {
            most = fabs@f@(last) + limit * (dt > @zero@ ? dt : @zero@) / @name@_rise_time;
        }
        state->drag[j] = within(wanted, most);
        tau[j] = within(tau[j] + state->drag[j], @name@_torque_limit[j]);
    }
    return 0;
}

void @name@_compensation_init(@name@_compensation *state)
{
    clear(state->drag);
}

int @name@_compensation_api(void)
{
    return @NAME@_COMPENSATION_API;
}

int @name@_n_joints(void)
{
    return @N@;
}

const char *@name@_joint_name(int joint)
{
    static const char *const names[@N@] = {@joints@};
    return joint >= 0 && joint < @N@ ? names[joint] : "";
}
"""

SELFTEST = """\
/* @mark@: self-test of the library on @source@. */

#include "@name@_compensation.h"

#include <math.h>
#include <stdio.h>

@tables@

#define WITH_MEASURED @has_measured@

/* Largest deviation from what the library of Python gives, as a share of the largest torque. */
static double deviation(const @real@ tau[@N@], const @real@ expected[@N@], double size)
{
    double worst = 0.0;
    for (int j = 0; j < @N@; j++) {
        const double off = fabs((double)tau[j] - (double)expected[j]) / size;
        if (!(off <= worst)) worst = off;
    }
    return worst;
}

int main(void)
{
    static const @real@ zero[@N@] = {@zero@};
    @name@_compensation state;
    double size = 1e-9, worst = 0.0, left[@N@] = {0.0}, all[@N@] = {0.0};
    int faults = 0;
@memory@@begin@    @name@_compensation_init(&state);
    (void)zero;
    for (int k = 0; k < N_SAMPLES; k++) {
        for (int j = 0; j < @N@; j++) {
            if (fabs((double)torque_of[k][j]) > size) size = fabs((double)torque_of[k][j]);
        }
    }
    for (int k = 0; k < N_SAMPLES; k++) {
        const @real@ *q = q_of[k], *dq = dq_of[k], *ddq = ddq_of[k];
        const @real@ dt = k > 0 ? stamps[k] - stamps[k - 1] : @zero@;
        @real@ tau[@N@], rest[@N@];
        double off;
@update@        @name@_inverse_dynamics(@dynamics@);
        off = deviation(tau, torque_of[k], size);
        if (!(off <= worst)) worst = off;
        for (int j = 0; j < @N@; j++) {
            const double error = (double)@measured@[k][j] - (double)tau[j];
            left[j] += error * error;
            all[j] += (double)@measured@[k][j] * (double)@measured@[k][j];
        }
        faults += @name@_hold(q, rest) != 0;
        off = deviation(rest, rest_of[k], size);
        if (!(off <= worst)) worst = off;
        faults += @name@_drag(&state, q, dq, dt, tau) != 0;
        for (int j = 0; j < @N@; j++) {
            if (!(fabs@f@(state.drag[j]) <= @name@_drag_limit[j])) faults++;
            if (!(fabs@f@(tau[j]) <= @name@_torque_limit[j])) faults++;
        }
    }
    printf("self-test of @name@ on %d samples of @source@\\n", N_SAMPLES);
    printf("largest deviation from the model: %.1e of the largest torque, allowed @limit@\\n", worst);
    if (WITH_MEASURED) {
        for (int j = 0; j < @N@; j++) {
            printf("%s: torque error %.1f %% of the measured torque\\n", @name@_joint_name(j),
                   100.0 * sqrt(left[j] / (all[j] > 0.0 ? all[j] : 1.0)));
        }
    }
    if (faults) printf("%d faults: torque beyond its limits, or a state refused\\n", faults);
    printf(worst <= @limit@ && !faults ? "ok\\n" : "FAILED\\n");
    return worst <= @limit@ && !faults ? 0 : 1;
}
"""

PYTHON = '''\
"""@mark@: gravity and friction compensation of robot @robot@, by its C library.

    make -f @name@.mk                   # builds lib@name@.so
    from @name@_compensation import Compensation
    arm = Compensation()
    tau = arm.hold(q)                   # torque that holds the arm still
    tau = arm.drag(q, dq, dt)           # the same, and less friction for a hand that moves it

Needs Python 3.8 and nothing else; q and dq may be lists or arrays.
"""

import ctypes
import pathlib

API = @api@
_FOLDER = pathlib.Path(__file__).resolve().parent
_Joints = ctypes.@ctype@ * @n@


class _State(ctypes.Structure):
    _fields_ = [("drag", _Joints)]


class Compensation:
    """Gravity and friction compensation.

    Args:
        library: The shared library; default lib@name@.so beside this file.

    Attributes:
        joints: Names of the joints, in the order of q.
        drag_share, rest_velocity, drag_limit, torque_limit: Limits of each joint; may be changed by index.
    """

    def __init__(self, library=None):
        path = pathlib.Path(library) if library is not None else _FOLDER / "lib@name@.so"
        if not path.is_file():
            raise FileNotFoundError(f"{path}: there is no such library; run make -f @name@.mk in {_FOLDER}")
        self._library = ctypes.CDLL(str(path))
        api, n = self._library.@name@_compensation_api(), self._library.@name@_n_joints()
        if (api, n) != (API, @n@):
            raise RuntimeError(f"{path}: has API {api} and {n} joints; expected API {API} and @n@; build it again")
        self._library.@name@_joint_name.restype = ctypes.c_char_p
        self._library.@name@_drag.argtypes = [
            ctypes.POINTER(_State), _Joints, _Joints, ctypes.@ctype@, ctypes.POINTER(_Joints)
        ]
        self._library.@name@_hold.argtypes = [_Joints, ctypes.POINTER(_Joints)]
        self.joints = [self._library.@name@_joint_name(j).decode() for j in range(n)]
        for name in ("drag_share", "rest_velocity", "drag_limit", "torque_limit"):
            setattr(self, name, _Joints.in_dll(self._library, f"@name@_{name}"))
        self._state, self._tau = _State(), _Joints()

    def hold(self, q):
        """Torque that holds the arm still, one number for each joint [N m or N]."""
        return self._answer(self._library.@name@_hold(self._joints("q", q), self._tau))

    def drag(self, q, dq, dt):
        """Torque that holds the arm, and a share of its friction; dt is the time since the last call [s]."""
        q, dq = self._joints("q", q), self._joints("dq", dq)
        return self._answer(self._library.@name@_drag(self._state, q, dq, dt, self._tau))

    def reset(self):
        """No friction torque: at the start, and after every pause."""
        self._state = _State()

    def _joints(self, name, values):
        values = [float(x) for x in values]
        if len(values) != @n@:
            raise ValueError(f"{name} has {len(values)} numbers; expected @n@, one for each joint")
        return _Joints(*values)

    def _answer(self, fault):
        if fault:
            raise ValueError("a position or velocity is no finite number")
        return list(self._tau)


if __name__ == "__main__":
    arm = Compensation()
    print(f"lib@name@.so, API {API}: {', '.join(arm.joints)}")
    print("hold at zero:", ", ".join(f"{x:.4g}" for x in arm.hold([0.0] * @n@)))
'''

MAKEFILE = """\
# @mark@: make -f @name@.mk builds the library, make -f @name@.mk test runs its self-test.
# By hand: cc -O2 -shared -fPIC -o lib@name@.so @name@.c @name@_compensation.c -lm

CC ?= cc
CFLAGS ?= -std=c99 -O2 -Wall -Wextra

lib@name@.so: @name@.c @name@_compensation.c @name@.h @name@_compensation.h
\t$(CC) $(CFLAGS) -shared -fPIC -o $@ @name@.c @name@_compensation.c -lm

selftest: @name@_selftest.c @name@.c @name@_compensation.c @name@.h @name@_compensation.h
\t$(CC) $(CFLAGS) -o $@ @name@_selftest.c @name@.c @name@_compensation.c -lm

.PHONY: test clean
test: selftest lib@name@.so
\t./selftest
\tpython3 @name@_compensation.py

clean:
\trm -f selftest lib@name@.so
"""
