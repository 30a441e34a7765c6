/* Torque of the demo's arm from C: what holds it still, and what starts it moving. See docs/tutorial-export.md. */
#include <stdio.h>

#include "demo_arm.h"

int main(void)
{
    const double q[DEMO_ARM_N_JOINTS] = {0.0, -1.2, 0.8, 0.3, 0.5, 0.0};
    const double dq[DEMO_ARM_N_JOINTS] = {0.0, 0.5, -0.5, 0.0, 0.0, 1.0};
    const double ddq[DEMO_ARM_N_JOINTS] = {1.0, 0.0, 0.0, 0.0, 2.0, 0.0};
    double hold[DEMO_ARM_N_JOINTS], move[DEMO_ARM_N_JOINTS];
    int j;

    demo_arm_gravity(q, demo_arm_base, hold);
    demo_arm_inverse_dynamics(q, dq, ddq, demo_arm_base, move);
    for (j = 0; j < DEMO_ARM_N_JOINTS; j++) {
        printf("%.9f %.9f\n", hold[j], move[j]);
    }
    return 0;
}
