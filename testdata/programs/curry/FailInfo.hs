-- | Why a computation failed.
module FailInfo where

newtype FailInfo = FailInfo String

defFailInfo :: FailInfo
defFailInfo = FailInfo "no rule applies"
