/** The ports on which programs of a session's sandbox listen, while the session runs. */
import type { Answer } from "../../src/cli/contract.ts";
import { readAt } from "../api/client.ts";
import { lackedRole } from "../frame/roles.ts";
import type { Session } from "./session.ts";

type Ports = Answer<"GET /v1/projects/:pid/sessions/:sid/ports">["ports"];

/** How often they are read. */
const POLL_MS = 5000;

/**
 * Reads the ports again and again while the session runs and the page is visible.
 *
 * @param path of the session in the API
 */
export const followPorts = (path: string, changed: () => void) => {
  let ports: Ports = [];
  let [isRunning, isReading, hasEnded] = [false, false, false];

  const set = (next: Ports): void => {
    if (hasEnded || String(next) === String(ports)) return;
    ports = next;
    changed();
  };
  const read = async (): Promise<void> => {
    if (isReading || !isRunning || document.visibilityState !== "visible" || lackedRole("open-port") !== null)
      return;
    isReading = true;
    // A sandbox that does not answer shows no ports. They are opened by number then.
    const answer = await readAt<"GET /v1/projects/:pid/sessions/:sid/ports">(`${path}/ports`).catch(
      () => null,
    );
    isReading = false;
    set(isRunning ? (answer?.ports ?? []) : []);
  };
  // oxlint-disable-next-line no-restricted-globals -- the browser's timer
  const timer = setInterval(() => void read(), POLL_MS);

  return {
    now: () => ports,
    see: ({ status }: Session): void => {
      const was = isRunning;
      isRunning = status === "running";
      if (isRunning && !was) void read();
      if (!isRunning) set([]);
    },
    end: (): void => {
      hasEnded = true;
      clearInterval(timer);
    },
  };
};
