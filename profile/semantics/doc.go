// Package semantics is the executable specification of cost attribution: a
// small lazy language, one evaluator for it, and the published rules by which
// costs are attributed to cost centres, causes or cost-centre stacks. The production
// code in package profile is tested against it on generated programs.
//
// # The language
//
// The language is that of Fig. 3 of Sansom & Peyton Jones, "Formally Based Profiling
// for Higher-Order Functional Languages" (TOPLAS 1997): λ-abstractions, saturated
// constructors, application to variables, recursive let, case, scc. For Brassel
// et al., "Run-Time Profiling of Functional Logic Programs" (LOPSTR 2004), it also
// has calls of flat functions, or, flexible case, and logical variables
// (let x = x). [Parse] reads both and uses let to bind arguments that are not
// variables.
//
// # The evaluator
//
// [Machine] is Sestoft's abstract machine (Fig. 5 of the 1997 paper) with
// environments in place of substitution: a control expression, a heap of thunks
// and values, a stack of argument, case and update frames. The machine does not
// attribute costs itself: a [Semantics] annotates control, heap and frames, and
// names the bearer of each cost, which is the centre, stack or set of causes that
// the cost is attributed to.
//
// # The rule sets
//
//   - [Lexical]: Sansom & Peyton Jones, Fig. 4; with their treatment of CAFs (§7,
//     Fig. 7), or with evaluation scoping (§8.1).
//   - [Stacks]: Morgan & Jarvis, "Profiling large-scale lazy functional programs"
//     (JFP 1998): the rule SCC′ of §2.2, Push of §2.4.2 on compressed stacks.
//   - Symbolic costs (Brassel et al., Fig. 2) are [Lexical] on flat programs;
//     [Instrument] is the program transformation of their Fig. 3.
//   - [Causality]: Wortmann & Duke, "Causality of Optimized Haskell" (2013), Fig. 1.
//
// # What a sampler would see
//
// The function Seen of a [Machine] is called for every cost when it arises, with the
// running code and the stack as it would lie in memory: return addresses of case
// continuations and pending applications, update frames. The stack has no
// annotations, because compiled code without profiling has none.
//
// The package imports no other package of this module.
package semantics
