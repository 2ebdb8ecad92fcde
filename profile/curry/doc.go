// Package curry decodes the names in Haskell that KiCS2, a compiler for the functional-logic
// language Curry, generates, and knows the modules of its run-time system.
//
// The rules are those of KiCS2's src/KiCS2/Names.curry, in versions 0.2 to 3. A Curry module M is
// the Haskell module Curry_M (Data.Set is Data.Curry_Set). A function has the prefix d_ in its
// deterministic version, and nd_ in the version that may make choices; then comes C_ before a name that
// Haskell could have too, or OP_ before one whose other characters are spelt out, joined by underscores:
// d_OP_plus_plus is ++. Constructors and types have C_ or OP_ alone. For each type T there are four
// more constructors: Choice_T, Choices_T, Fail_T and Guard_T.
package curry
