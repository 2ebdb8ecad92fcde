#include "textflag.h"

TEXT ·callProbeSite(SB), NOSPLIT, $0-0
	JMP ·afterSite<>(SB)

TEXT ·callPlainSite(SB), NOSPLIT, $0-0
	JMP ·afterSite<>(SB)

TEXT ·afterSite<>(SB), NOSPLIT, $0-0
	RET

TEXT ·probeSiteAddress(SB), NOSPLIT, $0-8
	LEAQ ·callProbeSite(SB), AX
	MOVQ AX, ret+0(FP)
	RET

TEXT ·callSteppedSite(SB), NOSPLIT, $0-0
	XORL AX, AX
	RET

TEXT ·callPlainSteppedSite(SB), NOSPLIT, $0-0
	XORL AX, AX
	RET

TEXT ·steppedSiteAddress(SB), NOSPLIT, $0-8
	LEAQ ·callSteppedSite(SB), AX
	MOVQ AX, ret+0(FP)
	RET
