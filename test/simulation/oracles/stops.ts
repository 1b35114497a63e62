/** How people stop sessions: each of the ways by the step's number. */
import { STOP_SAVES } from "../../../src/domain/save/order.ts";

export { stopSession as stopped } from "../../../src/http/steps/sessions/stopping.ts";

export const stopBy = (how: number) => ({ save: STOP_SAVES[how % STOP_SAVES.length] ?? ("try" as const) });
