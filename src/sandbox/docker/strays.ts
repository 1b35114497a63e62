/**
 * Containers of sandboxes whose directory is gone, for example because the machine emptied its temporary directory. A
 * sandbox's directory exists before its container, and is removed after it.
 */
import { existsSync } from "node:fs";
import { engineAt } from "../containers/engine.ts";
import { sandboxPaths } from "../machine/disk/run-directory.ts";
import { LABELS } from "./labels.ts";

export interface StrayContainer {
  readonly name: string;
  readonly runDir: string;
}

/** @param socket the engine's. @throws EngineFailure if the engine does not answer */
export const strayContainers = async (socket: string): Promise<readonly StrayContainer[]> => {
  const containers = await engineAt(socket).containers(LABELS.sandbox);
  return containers.flatMap(({ name, labels }) => {
    const [id, runDir] = [labels[LABELS.sandbox], labels[LABELS.runDirectory]];
    const isStray = id !== undefined && runDir !== undefined && !existsSync(sandboxPaths(runDir, id).root);
    return isStray ? [{ name, runDir }] : [];
  });
};

/** Removes a container. */
export const removeStray = (socket: string, name: string): Promise<void> => engineAt(socket).remove(name);
