/** The pages of the account: who is signed in, where, and what waits for a free session. The receivers of a project are in the same script: a script of their own would be 1.4 kB more. */
import { receiversPage as receivers } from "../notifications/list.tsx";
import { receiverPage as receiver } from "../notifications/receiver.tsx";
import { account } from "./account.tsx";
import { browsers } from "./browsers.tsx";
import { device } from "./device.tsx";
import { queue } from "./queue.tsx";

export const pages = { account, browsers, device, queue, receiver, receivers };
