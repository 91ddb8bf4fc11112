/* SPDX-License-Identifier: GPL-2.0-only */
/* The engine's controllers for the kernel: its rules behind the kernel's callbacks. */
#include "rules/controllers.h"

#include "callbacks.h"

CONTROLLER(lia, CC_LIA, "lia")
CONTROLLER(olia, CC_OLIA, "olia")
CONTROLLER(balia, CC_BALIA, "balia")
CONTROLLER(wvegas, CC_WVEGAS, "wvegas")
CONTROLLER(mveno, CC_MVENO, "mveno")
CONTROLLER(mveno_own_rtt, CC_MVENO_OWN_RTT, "mveno_own_rtt")
CONTROLLER(mpveno, CC_MPVENO, "mpveno")
CONTROLLER(mcc_coop, CC_MCC_COOP, "mcc_coop")
CONTROLLER(gmcc_coop, CC_GMCC_COOP, "gmcc_coop")
/* Linux may have its own Veno. */
CONTROLLER(veno, CC_VENO, "anabranch_veno")
