/** Files that a person names on the command line. */
import { constants } from "node:fs";
import { access, stat } from "node:fs/promises";
import { fileFault } from "../../domain/repository/file-fault.ts";

/** Why a file cannot be read, as the end of a sentence. Null if it can. A pipe is not tried, because it can be opened only once. */
export const unreadable = async (file: string): Promise<string | null> => {
  try {
    await access(file, constants.R_OK);
    return (await stat(file)).isDirectory() ? "it is a directory" : null;
  } catch (error) {
    return fileFault(error);
  }
};
