/** What `index.html` loads: the frame, and where the pages are that are remade. Each is a script of its own; `frame/pages.ts` has their addresses. */
import { start } from "./frame/app.ts";
import { FOLDERS } from "./frame/later.ts";

FOLDERS["account"] = () => import("./account/page.tsx");
FOLDERS["activity"] = () => import("./activity/page.tsx");
FOLDERS["automations"] = () => import("./automations/page.tsx");
FOLDERS["connectors"] = () => import("./connectors/page.tsx");
FOLDERS["conversation"] = () => import("./conversation/page.tsx");
FOLDERS["audit"] = () => import("./audit/page.tsx");
FOLDERS["change-requests"] = () => import("./change-requests/page.tsx");
FOLDERS["environments"] = () => import("./environments/page.tsx");
FOLDERS["home"] = () => import("./home/page.tsx");
FOLDERS["operator"] = () => import("./operator/page.tsx");
FOLDERS["people"] = () => import("./people/page.tsx");
FOLDERS["providers"] = () => import("./providers/page.tsx");
FOLDERS["projects"] = () => import("./projects/page.tsx");
FOLDERS["settings"] = () => import("./settings/page.tsx");
FOLDERS["state"] = () => import("./state/page.tsx");
FOLDERS["sessions"] = () => import("./sessions/page.tsx");
void start();
