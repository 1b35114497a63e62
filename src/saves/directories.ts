/** Where a data directory has saved work. */
import { join } from "node:path";

/** The saves of each project, in a repository. They are on no other server, so every backup has them. */
export const savesIn = (dataDir: string): string => join(dataDir, "saves");
/** What people fetch of saves. They are made again when they are missing. */
export const viewsIn = (dataDir: string): string => join(dataDir, "views");
