/** Where a data directory has mirrors: of plain git servers, and of code hosts. */
import { join } from "node:path";

export const mirrorsIn = (dataDir: string) => ({
  mirrors: join(dataDir, "mirrors"),
  codeHostMirrors: join(dataDir, "code-host-mirrors"),
});
