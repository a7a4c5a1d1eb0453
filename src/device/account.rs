//! The caller's account, as the system's password database has it: a file, or a directory service behind it.

use std::ffi::{CStr, c_char};
use std::mem::MaybeUninit;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Account {
    pub user: String,
    /// `Ada Lovelace`; empty where the database has none. By custom a room and telephone numbers follow in this field,
    /// after commas.
    pub full_name: String,
    pub home: String,
}

/// The account that this process runs under; `None` where the database does not know it.
pub fn account() -> Option<Account> {
    let mut entry = MaybeUninit::<libc::passwd>::uninit();
    let mut found = std::ptr::null_mut();
    // Larger than any usual entry; an entry that does not fit counts as unknown.
    let mut buffer = vec![0; 1 << 16];
    // SAFETY: the entry and the buffer live as long as the call, and the buffer has the given length.
    let answer = unsafe {
        libc::getpwuid_r(libc::geteuid(), entry.as_mut_ptr(), buffer.as_mut_ptr(), buffer.len(), &raw mut found)
    };
    if answer != 0 || found.is_null() {
        return None;
    }
    // SAFETY: an entry that was found is initialised.
    let entry = unsafe { entry.assume_init() };
    let text = |text: *const c_char| match text.is_null() {
        true => String::new(),
        // SAFETY: a text of an entry ends with a zero, and lies in the buffer, which is still there.
        false => unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned(),
    };
    Some(Account { user: text(entry.pw_name), full_name: text(entry.pw_gecos), home: text(entry.pw_dir) })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `id` asks the same database.
    #[test]
    fn the_account_is_the_callers() {
        let asked = std::process::Command::new("id").arg("-un").output().expect("id starts");
        let name = String::from_utf8_lossy(&asked.stdout).trim().to_owned();
        let found = account().map(|account| account.user).unwrap_or_default();
        assert_eq!(found, if asked.status.success() { name } else { String::new() });
    }
}
