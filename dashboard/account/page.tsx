/** The pages of the account: who is signed in, where, and what waits for a free session. And who else hears of a project. */
import { account } from "./account.tsx";
import { browsers } from "./browsers.tsx";
import { device } from "./device.tsx";
import { notification } from "./notification.tsx";
import { notifications } from "./notifications.tsx";
import { queue } from "./queue.tsx";

export const pages = { account, browsers, device, notification, notifications, queue };
