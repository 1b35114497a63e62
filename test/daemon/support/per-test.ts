/** Daemons of one test each, which they end with. */
import { afterEach } from "vitest";
import { Running, type RunOptions } from "./running.ts";

/** To be called once in a test file. `start` returns when the daemon was started, `ready` when it is. */
export const daemonPerTest = () => {
  let running: Running | null = null;
  afterEach(async () => {
    await running?.dispose();
    running = null;
  });
  const start = async (options: RunOptions = {}): Promise<Running> => {
    running = await Running.start(options);
    return running;
  };
  const ready = async (options: RunOptions = {}): Promise<Running> => {
    const daemon = await start(options);
    await daemon.logged("ready");
    return daemon;
  };
  return { start, ready };
};
