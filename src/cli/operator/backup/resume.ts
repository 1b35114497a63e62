/** The work of `platform admin resume`: a restored copy is let go (ground/pause.ts). */
import * as Effect from "effect/Effect";
import type { Environment } from "../../configuration.ts";
import { readConfig } from "../../../settings/config.ts";
import { endPause } from "../../../services/pausing.ts";
import { asOperator } from "../acting.ts";
import { installedStore } from "../database.ts";

/** @returns whether it was paused */
export const resume = (environment: Environment) =>
  Effect.suspend(() =>
    Effect.provide(asOperator(endPause), installedStore(readConfig(environment, process.cwd()))),
  );
