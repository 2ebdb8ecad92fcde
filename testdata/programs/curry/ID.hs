-- | Identifiers of choices and logical variables, and the store of decisions about them.
module ID where

import Data.IORef (readIORef, writeIORef)
import IDSupply

-- | How many encapsulated searches are around a value. The programs here have none.
type Cover = Int

data ID = ChoiceID !IDSupply | FreeID !IDSupply | NarrowedID !IDSupply

thisID, freeID :: IDSupply -> ID
thisID = ChoiceID
freeID = FreeID

narrowID :: ID -> ID
narrowID (FreeID s) = NarrowedID s
narrowID i = i

supply :: ID -> IDSupply
supply (ChoiceID s) = s
supply (FreeID s) = s
supply (NarrowedID s) = s

getKey :: ID -> Int
getKey = unique . supply

-- | Of a variable's arguments: the supplies of its first and second one.
nextSupplies :: ID -> (IDSupply, IDSupply)
nextSupplies i = (leftSupply (supply i), rightSupply (supply i))

lookupDecision :: ID -> IO Int
lookupDecision = readIORef . decision . supply
{-# NOINLINE lookupDecision #-}

setDecision :: ID -> Int -> IO ()
setDecision i = writeIORef (decision (supply i))
{-# NOINLINE setDecision #-}

-- | An alternative that a variable was bound to.
data Constraint = ID :=: !Int

newtype Constraints = Constraints [Constraint]
