//! A folder of images: one folder for each class, as torchvision's `ImageFolder` reads them.

use std::path::{Path, PathBuf};

use super::image::Image;
use super::{Source, fingerprint, fingerprint_of_all, spread};
use crate::error::{Error, Result};
use crate::network::Shape;
use crate::os::look;

/// The images of a folder, by class and name.
#[derive(Clone, Debug)]
pub struct Folder {
    files: Vec<LabelledFile>,
    pub classes: Vec<String>,
    shape: Shape,
}

#[derive(Clone, Debug)]
struct LabelledFile {
    path: PathBuf,
    label: u32,
}

impl Folder {
    /// Lists the images of `path`. Only the first image that can be decoded is decoded; it sets the shape if none is given.
    ///
    /// # Errors
    /// [`crate::error::Kind::Io`] where the folder cannot be listed, [`crate::error::Kind::Data`] where it holds no images in
    /// folders of classes.
    pub fn open(path: &Path, shape: Option<Shape>) -> Result<Self> {
        let mut folders = Vec::new();
        for entry in look::visible(path)? {
            if look::is_folder(&entry)? {
                folders.push(entry);
            }
        }
        let mut files = Vec::new();
        for (label, folder) in (0..).zip(&folders) {
            let images = look::visible(folder)?.into_iter().filter(|file| is_image(file));
            files.extend(images.map(|path| LabelledFile { path, label }));
        }
        if files.is_empty() {
            return Err(Error::data("there are no images (.png, .jpg, .jpeg) in folders of classes")
                .at(path.display().to_string())
                .hint("a set of images is train/<class>/<image>.png"));
        }
        let shape = match shape {
            Some(shape) => shape,
            None => Image::first_shape(files.iter().map(|file| decode(&file.path)))?,
        };
        let name = |folder: &PathBuf| folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
        Ok(Self { classes: folders.iter().map(name).collect(), files, shape })
    }

    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// Keeps `count` images.
    pub fn thin(&mut self, count: usize) {
        self.files = spread(self.files.len(), count).map(|place| self.files[place].clone()).collect();
    }
}

impl Source for Folder {
    fn count(&self) -> usize {
        self.files.len()
    }

    fn read(&self, index: usize, bytes: &mut [u8]) -> Result<u32> {
        let LabelledFile { path, label } = &self.files[index];
        decode(path)?.write(self.shape, bytes, path.display())?;
        Ok(*label)
    }

    fn name(&self, index: usize) -> String {
        self.files[index].path.display().to_string()
    }

    /// The fingerprint of the names and classes of the files, without their sizes: a run that a damaged file ended goes on with the repaired one.
    fn fingerprint(&self) -> u64 {
        fingerprint_of_all(self.files.iter().map(|file| {
            let name = file.path.file_name().unwrap_or_default();
            fingerprint(name.as_encoded_bytes().chunks(8).chain([&file.label.to_le_bytes()[..]]))
        }))
    }
}

fn decode(path: &Path) -> Result<Image> {
    let contents = std::fs::read(path).map_err(|error| unreadable(path, &error))?;
    Image::decode(&contents, path.display())
}

/// An image that vanished or cannot be opened is one that cannot be read, like a damaged one: the run may go on without it.
fn unreadable(path: &Path, error: &std::io::Error) -> Error {
    Error::data(format!("the image cannot be read: {error}"))
        .at(path.display().to_string())
        .hint("put the image back, or leave out what cannot be read with `on_error = \"skip\"` in [loader]")
}

fn is_image(path: &Path) -> bool {
    let extension = path.extension().unwrap_or_default().to_string_lossy().to_lowercase();
    ["png", "jpg", "jpeg"].contains(&extension.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::image::tests::encoded;
    use crate::error::Kind;

    fn png(path: &Path) {
        std::fs::write(path, encoded(2, 1, png::ColorType::Grayscale, &[1, 2])).expect("written");
    }

    #[test]
    fn a_repaired_image_leaves_the_fingerprint_and_another_class_changes_it() {
        let folder = tempfile::tempdir().expect("a folder");
        for class in ["cat", "dog"] {
            std::fs::create_dir(folder.path().join(class)).expect("a folder");
            png(&folder.path().join(class).join(format!("{class}.png")));
        }
        let fingerprint = || Folder::open(folder.path(), None).expect("listed").fingerprint();
        let (whole, cat) = (fingerprint(), folder.path().join("cat/cat.png"));
        std::fs::write(&cat, b"cut short").expect("written");
        assert_eq!(fingerprint(), whole);
        png(&cat);
        std::fs::rename(&cat, folder.path().join("dog/cat.png")).expect("moved");
        assert_ne!(fingerprint(), whole);
    }

    #[test]
    fn an_image_that_cannot_be_opened_is_an_error_about_the_data_with_its_name() {
        let folder = tempfile::tempdir().expect("a folder");
        let class = folder.path().join("cat");
        std::fs::create_dir(&class).expect("a folder");
        let paths = ["0.png", "1.png", "2.png"].map(|name| class.join(name));
        paths.iter().for_each(|path| png(path));
        let listed = Folder::open(folder.path(), None).expect("listed");
        // The file is replaced by a folder, which not even root can read as a file.
        std::fs::remove_file(&paths[1]).expect("removed");
        std::fs::remove_file(&paths[2]).expect("removed");
        std::fs::create_dir(&paths[2]).expect("a folder");
        let mut bytes = [0; 2];
        assert_eq!((listed.read(0, &mut bytes).expect("read"), bytes), (0, [1, 2]));
        for at in [1, 2] {
            let error = listed.read(at, &mut bytes).expect_err("refused");
            assert_eq!(error.kind(), Kind::Data);
            let text = error.to_string();
            let named = format!("{}: the image cannot be read", paths[at].display());
            assert!(text.starts_with(&named) && text.contains("on_error") && !text.contains("--out"), "{text}");
        }
    }
}
