/** The work of `platform admin pause` and `platform admin resume`: a restored copy is held back and let go (ground/pause.ts). */
import * as Effect from "effect/Effect";
import type { Environment } from "../../../cli/configuration.ts";
import { readConfig } from "../../../settings/config.ts";
import { beginPause, endPause } from "../../../services/pausing.ts";
import { asOperator } from "../acting.ts";
import { installedStore } from "../database.ts";

const inInstallation = <A, E, R>(environment: Environment, change: Effect.Effect<A, E, R>) =>
  Effect.suspend(() =>
    Effect.provide(asOperator(change), installedStore(readConfig(environment, process.cwd()))),
  );

export const pause = (environment: Environment) => inInstallation(environment, beginPause);

/** @returns whether it was paused */
export const resume = (environment: Environment) => inInstallation(environment, endPause);
