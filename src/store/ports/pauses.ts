/** The pause of a restored copy (ground/pause.ts): one of the store's ports, see journal.ts. */
import * as Context from "effect/Context";
import type { Stored } from "./journal.ts";

export class Pauses extends Context.Service<
  Pauses,
  {
    /** Since when the installation is paused, in ms since the epoch. Null if it is not. */
    readonly since: Stored<number | null>;
    readonly begin: (now: number) => Stored<void>;
    /** @returns false if it was not paused */
    readonly end: Stored<boolean>;
  }
>()("platform/store/Pauses") {}
