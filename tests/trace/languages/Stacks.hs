-- Allocates and collects garbage; its functions are jumped to.
module Main where

import Data.List (foldl')
import qualified Data.Map.Strict as Map
import System.Mem (performGC)

step :: Map.Map Int String -> Int -> Map.Map Int String
step m i = Map.insertWith (++) (i `mod` 977) (show i) (if Map.size m > 900 then Map.empty else m)
{-# NOINLINE step #-}

main :: IO ()
main = mapM_ round' [1 .. 5 :: Int]
  where
    round' k = do
      let m = foldl' step Map.empty [1 .. 20000 + k]
      performGC
      print (Map.size m)
