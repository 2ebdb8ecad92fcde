package eventlog

// Ids of GHC's own events, as EventLogFormat.h assigns them.
const (
	IDCreateThread       = 0
	IDRunThread          = 1
	IDStopThread         = 2
	IDThreadRunnable     = 3
	IDMigrateThread      = 4
	IDThreadWakeup       = 8
	IDGCStart            = 9
	IDGCEnd              = 10
	IDRequestSeqGC       = 11
	IDRequestParGC       = 12
	IDCreateSparkThread  = 15
	IDLogMsg             = 16
	IDStartup            = 17 // GHC ≤ 7.0
	IDBlockMarker        = 18
	IDUserMsg            = 19
	IDGCIdle             = 20
	IDGCWork             = 21
	IDGCDone             = 22
	IDCapsetCreate       = 25
	IDCapsetDelete       = 26
	IDCapsetAssignCap    = 27
	IDCapsetRemoveCap    = 28
	IDRTSIdentifier      = 29
	IDProgramArgs        = 30
	IDProgramEnv         = 31
	IDOSProcessPID       = 32
	IDOSProcessPPID      = 33
	IDSparkCounters      = 34
	IDSparkCreate        = 35
	IDSparkDud           = 36
	IDSparkOverflow      = 37
	IDSparkRun           = 38
	IDSparkSteal         = 39
	IDSparkFizzle        = 40
	IDSparkGC            = 41
	IDWallClock          = 43
	IDThreadLabel        = 44
	IDCapCreate          = 45
	IDCapDelete          = 46
	IDCapDisable         = 47
	IDCapEnable          = 48
	IDHeapAllocated      = 49
	IDHeapSize           = 50
	IDHeapLive           = 51
	IDHeapInfo           = 52
	IDGCStats            = 53
	IDGCGlobalSync       = 54
	IDTaskCreate         = 55
	IDTaskMigrate        = 56
	IDTaskDelete         = 57
	IDUserMarker         = 58
	IDHackT9003          = 59
	IDMemReturn          = 90
	IDBlocksSize         = 91
	IDPerfName           = 140
	IDPerfCounter        = 141
	IDPerfTracepoint     = 142
	IDHeapProfBegin      = 160
	IDCostCentre         = 161
	IDHeapSampleBegin    = 162
	IDHeapSampleStack    = 163
	IDHeapSampleString   = 164
	IDHeapSampleEnd      = 165
	IDHeapBioSampleBegin = 166
	IDProfSample         = 167
	IDProfBegin          = 168
	IDInfoTable          = 169
	IDUserBinaryMsg      = 181
	IDConcMarkBegin      = 200
	IDConcMarkEnd        = 201
	IDConcSyncBegin      = 202
	IDConcSyncEnd        = 203
	IDConcSweepBegin     = 204
	IDConcSweepEnd       = 205
	IDConcUpdRemSetFlush = 206
	IDNonmovingCensus    = 207
	IDNonmovingPruned    = 208
	IDTickyCounterDef    = 210
	IDTickyCounterSample = 211
	IDTickyBeginSample   = 212
	idEnd                = 0xffff // ends the data; never an event
)

// Ids of this project's events. GHC assigns none from 1000 up, and every reader
// skips an event by its declaration in the header.
const (
	IDCapture     = 1000
	IDEventDef    = 1001
	IDModule      = 1002
	IDMapping     = 1003
	IDProcess     = 1004
	IDNodes       = 1005
	IDSample      = 1006
	IDLoss        = 1007
	IDAgentCost   = 1008
	IDCaptureEnd  = 1009
	IDCentreDef   = 1010
	IDCentreStack = 1011
	IDOverhead    = 1012
	IDWarning     = 1013
	IDThreadName  = 1014
	IDSparks      = 1015

	IDModuleSymbols = 1020
	IDFile          = 1021
	IDFileText      = 1022
	IDBinding       = 1023
	IDSpan          = 1024
	IDBlock         = 1025
	IDLocations     = 1026

	IDRTSProbes    = 1030
	IDEventCount   = 1031
	IDEventRate    = 1032
	IDSampling     = 1033
	IDUnrecorded   = 1034
	IDRTSWatch     = 1035
	IDClosure      = 1036
	IDNurseryBlock = 1037
	// Ids from 1040 to 1049 are those of thread dumps.
	IDThreadDump    = 1040
	IDHaskellThread = 1041
	IDBlocker       = 1042
	IDOSThread      = 1043
	// Ids from 1050 to 1059 are those of a census of the heap.
	IDHeapGraph  = 1050
	IDHeapBand   = 1051
	IDHeapRoot   = 1052
	IDHeapBranch = 1053
	IDHeapPath   = 1054
	IDHeapStuck  = 1059
	// Where the memory of a process is.
	IDFootprint      = 1055
	IDFootprintPart  = 1056
	IDFootprintPin   = 1057
	IDFootprintStack = 1058
	// Ids from 1060 on are those of transactions.
	IDTransactionWindow    = 1060
	IDTransactionVariables = 1061
	// Choices of functional-logic programs.
	IDSearchWindow = 1064
	// Those of a series of censuses of the heap.
	IDHeapCensus = 1070
	IDHeapSeries = 1071
	IDHeapDraw   = 1072
	IDHeapKinds  = 1073

	IDCore     = 1027
	IDCoreText = 1028
)
