/** What config.ts needs of the settings of saved work. */
import type { SettingReader } from "./setting-reader.ts";

export interface SavingSettings {
  readonly saveTimeoutMs: number;
  readonly saveEveryMs: number;
  /** How much of this node's disk saved work may use. */
  readonly savesProjectBytes: number;
  readonly savesSessionBytes: number;
}

export const readSaving = (read: SettingReader): SavingSettings => ({
  saveTimeoutMs: read.duration("PLATFORM_SAVE_TIMEOUT_MS"),
  saveEveryMs: read.duration("PLATFORM_SAVE_EVERY_MS"),
  savesProjectBytes: read.integer("PLATFORM_SAVES_PROJECT_BYTES"),
  savesSessionBytes: read.integer("PLATFORM_SAVES_SESSION_BYTES"),
});
