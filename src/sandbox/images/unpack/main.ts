/**
 * The program that unpacks one image, in a sandbox whose root is the image's new root (../import.ts). Descriptor 0 is
 * the archive. Prints one JSON line: the image, or `{failure}`.
 */
import { prepareRoot } from "./mount-points.ts";
import { openArchive } from "./archive.ts";
import { UnpackFailure } from "./failure.ts";
import { writeLayers } from "./layers.ts";

const [scratch = "", bytes = "", files = ""] = process.argv.slice(2);

const run = async (): Promise<object> => {
  const { digest, config, layers } = await openArchive(0, { directory: scratch, bytes: Number(bytes) });
  const result = await writeLayers("/", layers, { bytes: Number(bytes), files: Number(files) });
  await prepareRoot("/");
  return { digest, ...config, ...result };
};

const failureText = (error: unknown): string => {
  if (error instanceof UnpackFailure) return error.message;
  const { code, message } = error as NodeJS.ErrnoException;
  return code === "ENOSPC" ? "the disk is full" : `a file cannot be written: ${message}`;
};

void run()
  .catch((error: unknown) => ({ failure: failureText(error) }))
  .then((report) => process.stdout.write(`${JSON.stringify(report)}\n`));
