package theme

import "image/color"

// The first palette is the default. The colour-blind one uses hues of the
// Okabe–Ito set, whose pairs differ in lightness as well, and a heat scale of
// one hue from dark blue to yellow.
var palettes = []palette{
	{
		name: "dark",
		text: rgb(0xd0d0d0), dim: rgb(0x808890), strong: rgb(0xffffff), line: rgb(0x586070),
		accent: rgb(0x5fafff), warn: rgb(0xffaf5f), err: rgb(0xff6f6f),
		selectBg: rgb(0x264f78), idleBg: rgb(0x303846), overlapBg: rgb(0x2a3328), rangeBg: rgb(0x2b3350),
		matchFg: rgb(0x000000), matchBg: rgb(0xffd75f),
		only: rgb(0xff875f), shared: rgb(0x5f87af),
		coolest: rgb(0x6fa3d3), mid: rgb(0xd7af5f), hottest: rgb(0xff5f5f),
		cold:  rgb(0x303030),
		flame: [HeatLevels]color.Color{rgb(0x00005f), rgb(0x5f005f), rgb(0x87005f), rgb(0xaf005f), rgb(0xd70000), rgb(0xd75f00), rgb(0xff8700), rgb(0xffaf00)},
		cause: [Causes]color.Color{rgb(0x5fd7ff), rgb(0xffaf5f), rgb(0xaf87ff), rgb(0x87d787)},
		run:   rgb(0x87d787), gc: rgb(0xffaf5f),
		keyword: rgb(0x87afff), typ: rgb(0x5fd7af), str: rgb(0xd7af87), num: rgb(0xd787d7),
	},
	{
		name: "light",
		text: rgb(0x303030), dim: rgb(0x666666), strong: rgb(0x000000), line: rgb(0xa8a8a8),
		accent: rgb(0x005faf), warn: rgb(0xaf5f00), err: rgb(0xc00000),
		selectBg: rgb(0xbcdcff), idleBg: rgb(0xe0e4ea), overlapBg: rgb(0xe4f2dc), rangeBg: rgb(0xdde4ff),
		matchFg: rgb(0x000000), matchBg: rgb(0xffd75f),
		only: rgb(0xaf0000), shared: rgb(0x5f87af),
		coolest: rgb(0x2f6fa7), mid: rgb(0x7f5f00), hottest: rgb(0xc00000),
		cold:  rgb(0xe4e4e4),
		flame: [HeatLevels]color.Color{rgb(0xffffd7), rgb(0xffffaf), rgb(0xffff87), rgb(0xffd787), rgb(0xffaf5f), rgb(0xff875f), rgb(0xff5f5f), rgb(0xd70000)},
		cause: [Causes]color.Color{rgb(0x0070a0), rgb(0xb05000), rgb(0x7030b0), rgb(0x207020)},
		run:   rgb(0x207020), gc: rgb(0xb05000),
		keyword: rgb(0x0000af), typ: rgb(0x006f5f), str: rgb(0x8f4f00), num: rgb(0x870087),
	},
	{
		name: "high-contrast",
		text: rgb(0xffffff), dim: rgb(0xc0c0c0), strong: rgb(0xffffff), line: rgb(0xffffff),
		accent: rgb(0x00ffff), warn: rgb(0xffff00), err: rgb(0xff8080),
		selectBg: rgb(0x0000c0), idleBg: rgb(0x404040), overlapBg: rgb(0x004000), rangeBg: rgb(0x400060),
		matchFg: rgb(0x000000), matchBg: rgb(0xffff00),
		only: rgb(0xffff00), shared: rgb(0x00c0ff),
		coolest: rgb(0x00c0ff), mid: rgb(0xffff00), hottest: rgb(0xff6060),
		cold:  rgb(0x303030),
		flame: [HeatLevels]color.Color{rgb(0x00005f), rgb(0x5f005f), rgb(0x87005f), rgb(0xaf0000), rgb(0xff5f5f), rgb(0xff8700), rgb(0xffaf00), rgb(0xffff00)},
		cause: [Causes]color.Color{rgb(0x00ffff), rgb(0xffff00), rgb(0xff80ff), rgb(0x00ff00)},
		run:   rgb(0x00ff00), gc: rgb(0xffff00),
		keyword: rgb(0x80c0ff), typ: rgb(0x00ff80), str: rgb(0xffc080), num: rgb(0xff80ff),
	},
	{
		name: "colour-blind",
		text: rgb(0xd8d8d8), dim: rgb(0x8a8a8a), strong: rgb(0xffffff), line: rgb(0x606878),
		accent: rgb(0x56b4e9), warn: rgb(0xf0e442), err: rgb(0xf5853a),
		selectBg: rgb(0x004c78), idleBg: rgb(0x343a44), overlapBg: rgb(0x3a3420), rangeBg: rgb(0x24304c),
		matchFg: rgb(0x000000), matchBg: rgb(0xf0e442),
		only: rgb(0xe69f00), shared: rgb(0x0087d7),
		coolest: rgb(0x5fafff), mid: rgb(0xb0b088), hottest: rgb(0xf0e442),
		cold:  rgb(0x303030),
		flame: [HeatLevels]color.Color{rgb(0x00005f), rgb(0x005f87), rgb(0x5f5f87), rgb(0x87875f), rgb(0xafaf5f), rgb(0xd7d75f), rgb(0xffd700), rgb(0xffff5f)},
		cause: [Causes]color.Color{rgb(0x56b4e9), rgb(0xe69f00), rgb(0xcc79a7), rgb(0xf0e442)},
		run:   rgb(0x56b4e9), gc: rgb(0xe69f00),
		keyword: rgb(0x56b4e9), typ: rgb(0x8fd0c0), str: rgb(0xe0c080), num: rgb(0xcc79a7),
	},
}
