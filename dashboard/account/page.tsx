/** The pages of the account: who is signed in, where, and what waits for a free session. */
import { account } from "./account.tsx";
import { browsers } from "./browsers.tsx";
import { device } from "./device.tsx";
import { queue } from "./queue.tsx";

export const pages = { account, browsers, device, queue };
