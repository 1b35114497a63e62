/** Sessions through the API, many at once. */
import { setTimeout as delay } from "node:timers/promises";
import type { Life } from "../../support/service/process-service.ts";

const AT_ONCE = 16;

/** Whether the project has a session of this status. */
export const has = async (life: Life, target: string, status: string): Promise<boolean> => {
  const { sessions } = await life.call("GET", `${target}?status=${status}&limit=1`);
  return (sessions as readonly unknown[]).length > 0;
};

/** Makes so many sessions, and waits until all of them run. */
export const begin = async (life: Life, projectId: string, count: number): Promise<readonly string[]> => {
  const target = `/v1/projects/${projectId}/sessions`;
  const ids: string[] = [];
  let left = count;
  // A service that has too much to do says so (503), and its clients come back.
  const create = async (): Promise<string> => {
    try {
      const body = { initial_prompt: "Look after the greeter. ".repeat(40) };
      return String((await life.call("POST", target, body))["id"]);
    } catch (error) {
      if (!String(error).includes(" answered 503")) throw error;
      await delay(500);
      return create();
    }
  };
  const makeNext = async (): Promise<void> => {
    while (left > 0) {
      left -= 1;
      ids.push(await create());
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, makeNext));
  while (await has(life, target, "provisioning")) await delay(200);
  return ids;
};
